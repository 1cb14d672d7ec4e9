"""What the macros made for Redshift render and refuse, without a server."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sandbox.settings import PROJECT
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros

ROLE = "arn:aws:iam::123456789012:role/spectrum"


class Answers:
    """A ``run_query`` that answers by what a query contains, and notes what was asked."""

    def __init__(self, answers: dict[str, list[list[Any]]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def __call__(self, query: str) -> SimpleNamespace:
        self.asked.append(query)
        found = [rows for part, rows in self._answers.items() if part in query]
        return SimpleNamespace(rows=found[0] if found else [])


def redshift(answers: dict[str, list[list[Any]]] | None = None, **other: Any) -> Macros:
    """The macros as dbt finds them with a target of Redshift."""
    context = {
        "modules": SimpleNamespace(re=re),
        "model": SimpleNamespace(package_name="millrace"),
        "project_name": "millrace",
        "print": lambda text: text,
        "run_query": Answers(answers or {}),
        **other,
    }
    return Macros("redshift", {"name": "redshift", "user": "millrace"}, context=context)


def test_a_dry_run_says_the_statement_and_sends_nothing() -> None:
    run_query = Answers({})
    macros = redshift(run_query=run_query)

    said = macros.create_external_schema(region="eu-central-1", iam_role=ROLE, dry_run=True)

    assert " ".join(said.split()) == (
        "create external schema if not exists bronze from data catalog "
        f"database 'bronze' region 'eu-central-1' iam_role '{ROLE}';"
    )
    assert run_query.asked == []


def test_the_external_schema_is_made_and_its_tables_counted() -> None:
    answers: dict[str, list[list[Any]]] = {
        "svv_external_schemas": [["lake_of_us"]],
        "svv_external_tables": [[6]],
    }

    said = redshift(answers).create_external_schema(database="lake_of_us")

    assert " ".join(said.split()) == (
        "External schema bronze reads the database lake_of_us: 6 tables"
    )


@pytest.mark.parametrize(
    ("reads", "message"),
    [
        ([["theirs"]], "schema bronze already exists and reads the database theirs, not bronze"),
        ([], "schema bronze already exists and is not an external one, not bronze"),
    ],
)
def test_a_schema_that_reads_something_else_is_an_error(
    reads: list[list[str]], message: str
) -> None:
    macros = redshift({"svv_external_schemas": reads})

    with pytest.raises(CompilerError, match=re.escape(message)):
        macros.create_external_schema()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": "my bronze"}, 'schema is "my bronze"'),
        ({"database": "x'; drop schema marts; --"}, "database is "),
        ({"iam_role": "arn:aws:iam::1:role/short"}, "iam_role is "),
        ({"iam_role": None}, "iam_role is null"),
        ({"region": "Frankfurt"}, 'region is "Frankfurt": it must be one like'),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(CompilerError, match=re.escape(message)):
        redshift().create_external_schema(**arguments)


def test_only_redshift_has_external_schemas() -> None:
    target = {"name": "sandbox", "type": "spark"}

    with pytest.raises(CompilerError, match="add `--target redshift`"):
        Macros("spark", target).create_external_schema()


def test_the_project_is_no_package_of_another_one() -> None:
    macros = redshift(project_name="acme")

    with pytest.raises(CompilerError, match="millrace is no package for acme: clone"):
        macros.assert_session()


@pytest.mark.parametrize(("version", "is_refused"), [("3.5.4 abc", True), ("4.1.1 c0690c7", False)])
def test_a_spark_that_is_too_old_is_refused(version: str, *, is_refused: bool) -> None:
    macros = Macros(
        "spark",
        {"name": "thrift"},
        context={
            "model": SimpleNamespace(package_name="millrace"),
            "project_name": "millrace",
            "env_var": lambda _name, default: default,
            "run_query": Answers(
                {
                    "version": [[version]],
                    "timeZone": [["zone", "UTC"]],
                    "home": [["home", "<undefined>"]],
                }
            ),
        },
    )

    if is_refused:
        with pytest.raises(CompilerError, match=r"this is Spark 3\.5\.4: Millrace needs"):
            macros.assert_session()
    else:
        macros.assert_session()


def test_a_user_of_another_zone_is_reported_how_to_change_it() -> None:
    macros = redshift({"show timezone": [["Europe/Berlin"]]})

    with pytest.raises(CompilerError, match="alter user millrace set timezone to 'UTC'"):
        macros.assert_session()


def test_a_user_of_utc_may_go_on() -> None:
    assert redshift({"show timezone": [["UTC"]]}).assert_session().strip() == ""


def test_a_bronze_table_is_looked_for_in_its_external_schema_once() -> None:
    run_query = Answers({"svv_external_tables": [["pagila__sales"]]})
    macros = redshift(
        run_query=run_query,
        graph={},
        invocation_id="1",
        var=lambda name, default: default,
        model=SimpleNamespace(resource_type="model"),
    )
    tables = [
        SimpleNamespace(schema="bronze", identifier=name)
        for name in ("pagila__sales", "pagila__refunds")
    ]

    assert [macros.is_in_lake(table) for table in tables] == [True, False]
    assert len(run_query.asked) == 1


@pytest.mark.parametrize(
    ("engine", "statement"),
    [("spark", "delete from t"), ("redshift", "begin; lock state.t; delete from t; commit")],
)
def test_rows_of_state_are_committed_at_once(engine: str, statement: str) -> None:
    made = Macros(engine).in_own_transaction("state.t", "delete from t")

    assert " ".join(made.split()) == statement


def test_every_text_of_staging_is_asked_whether_it_fits() -> None:
    staged = {
        (source, table): dict(re.findall(r'trimmed_text\("(\w+)", (\d+)\)', file.read_text()))
        for file in (PROJECT / "models/staging").glob("*/stg_*.sql")
        for source, table in [file.stem.removeprefix("stg_").split("__")]
    }
    asked: dict[tuple[str, str], dict[str, str]] = {}
    lists: set[str] = set()
    for file in (PROJECT / "models/staging").glob("*/_*__sources.yml"):
        for source in yaml.safe_load(file.read_text())["sources"]:
            for table in source["tables"]:
                for column in table["columns"]:
                    lists.update(re.findall(r"(\w+):array<", column["data_type"]))
                for test in table.get("data_tests", []):
                    if isinstance(test, dict) and "texts_fit" in test:
                        most = test["texts_fit"]["arguments"]["max_bytes"]
                        asked[source["name"], table["name"]] = {
                            name.removeprefix("records.after."): str(n) for name, n in most.items()
                        }

    # The text of a list is made in staging: bronze has none to ask.
    described = {
        key: {name: n for name, n in columns.items() if name not in lists}
        for key, columns in staged.items()
    }
    assert asked == {key: columns for key, columns in described.items() if columns}


def test_readers_may_use_the_schemas_in_which_something_is_built_for_them() -> None:
    def node(name: str, schema: str, readers: list[str], kind: str = "view") -> Any:
        return {
            "unique_id": name,
            "schema": schema,
            "config": {"materialized": kind, "grants": {"select": readers}},
        }

    readers = ["reader", "role:analysts"]
    nodes = [
        node("a", "intermediate", readers),
        node("b", "marts", readers, "table"),
        node("c", "of_views_that_are_none", readers, "ephemeral"),
        node("d", "not_built_now", readers),
        node("e", "for_nobody", []),
    ]
    macros = redshift(
        graph=SimpleNamespace(nodes={of["unique_id"]: of for of in nodes}),
        selected_resources=["a", "b", "c", "e"],
        redshift__format_grantees=lambda names: [name.replace("role:", "ROLE ") for name in names],
    )

    statements = macros.redshift__grant_schema_usage().split(";")

    assert [" ".join(one.split()) for one in statements] == [
        "grant usage on schema intermediate to reader, ROLE analysts",
        "grant usage on schema marts to reader, ROLE analysts",
        "",
    ]


def test_who_may_read_the_marts_may_read_what_pages_send_them_to() -> None:
    project = yaml.safe_load((PROJECT / "dbt_project.yml").read_text())
    layers = project["models"]["millrace"]

    assert "DBT_READERS" in layers["marts"]["+grants"]["select"]
    assert layers["intermediate"]["+grants"] == layers["marts"]["+grants"]
    assert "+grants" not in layers["staging"]
