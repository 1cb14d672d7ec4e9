"""What Spark says of a statement is reported without its plan, its text and its trace."""

from __future__ import annotations

from spark_ingest.errors import spark_reason


def test_an_unknown_table_is_reported_without_the_plan() -> None:
    message = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`x` cannot be found.\n"
        "To tolerate the error use IF EXISTS. SQLSTATE: 42P01; line 1 pos 14;\n"
        "'Project [*]\n+- 'UnresolvedRelation [nope, x], [], false\n"
    )

    assert spark_reason(message) == (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`x` cannot be found."
        " To tolerate the error use IF EXISTS. (line 1, position 14)"
    )


def test_a_syntax_error_keeps_its_place() -> None:
    message = (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'."
        " SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nselec 1\n^^^\n"
    )

    assert spark_reason(message) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. (line 1, position 0)"
    )


def test_a_failure_while_running_keeps_its_message_and_place() -> None:
    message = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\n"
        "select 1/0\n       ^^^\n\nJVM stacktrace:\norg.apache.spark.SparkArithmeticException"
    )

    assert spark_reason(message) == ("[DIVIDE_BY_ZERO] Division by zero. (line 1, position 8)")


def test_the_line_of_a_statement_is_shown_as_its_reader_counts() -> None:
    message = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved."
        " Did you mean one of the following? [`a`, `b`]. SQLSTATE: 42703; line 4 pos 4;\n"
        "'Project [a#6, 'nope]\n+- SubqueryAlias one\n"
    )

    reported = spark_reason(message, "select\n    a,\n    nope\nfrom one", before=1)

    assert reported == (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved."
        " Did you mean one of the following? [`a`, `b`]. (line 3, position 4)\n"
        "line 3: nope"
    )


def test_an_error_of_a_task_is_distinguished_from_its_class_on() -> None:
    message = (
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent"
        " failure: Lost task 0.0 in stage 3.0 (TID 5) (127.0.0.1 executor driver):"
        " org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] no such day"
        " SQLSTATE: P0001\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raise(Q.scala:1)"
    )

    assert spark_reason(message) == "[USER_RAISED_EXCEPTION] no such day"


def test_an_error_without_a_class_keeps_what_java_says() -> None:
    message = (
        "An error occurred while calling o55.sql.\n: java.lang.IllegalStateException:"
        " Invalid schema for v2:\n- Invalid type for x: unknown is not supported until v3\n"
        "\tat org.apache.iceberg.Schema.check(Schema.java:1)\nCaused by: nobody\n"
    )

    assert spark_reason(message) == (
        "java.lang.IllegalStateException: Invalid schema for v2:"
        " - Invalid type for x: unknown is not supported until v3"
    )


def test_a_line_within_a_view_is_not_looked_for_in_the_statement() -> None:
    message = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL of VIEW lake.marts.halves (line 1, position 8) ==\nselect 1/0\n"
    )

    reported = spark_reason(message, "select *\nfrom halves")

    assert reported == (
        "[DIVIDE_BY_ZERO] Division by zero. (line 1, position 8 of VIEW lake.marts.halves)"
    )


def test_a_catalog_without_its_jar_is_reported_with_the_fix() -> None:
    message = (
        "An error occurred while calling o43.sql.\n: org.apache.spark.SparkException:"
        " Cannot find catalog plugin class for catalog 'lake':"
        " org.apache.iceberg.spark.SparkCatalog.\n\tat org.apache.spark.Q.q(Q.scala:1)"
    )

    assert spark_reason(message) == (
        "org.apache.spark.SparkException: Cannot find catalog plugin class for catalog"
        " 'lake': org.apache.iceberg.spark.SparkCatalog:"
        " run `sandbox parts spark`, which fetches the JARs"
    )
