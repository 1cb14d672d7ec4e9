"""A statement that Spark refuses is told in one line."""

from __future__ import annotations

from sandbox.query import _one_line


def test_an_unknown_table_is_told_without_the_plan() -> None:
    message = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`x` cannot be found.\n"
        "To tolerate the error use IF EXISTS. SQLSTATE: 42P01; line 1 pos 14;\n"
        "'Project [*]\n+- 'UnresolvedRelation [nope, x], [], false\n"
    )

    assert _one_line(message) == (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`x` cannot be found."
        " To tolerate the error use IF EXISTS. (line 1, position 14)"
    )


def test_a_syntax_error_keeps_its_place() -> None:
    message = (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'."
        " SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nselec 1\n^^^\n"
    )

    assert _one_line(message) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. (line 1, position 0)"
    )


def test_a_failure_while_running_keeps_its_message_only() -> None:
    message = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\n"
        "select 1/0\n       ^^^\n\nJVM stacktrace:\norg.apache.spark.SparkArithmeticException"
    )

    assert _one_line(message) == "[DIVIDE_BY_ZERO] Division by zero."
