"""What is part of the code that rows were made by, and what is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.python.unit.dbt.test_increment_macros import Node, macros, node


@pytest.mark.parametrize(
    "same",
    [
        "{#- why -#}\n-- so\n    select sum(a) as b from c -- it's why\n\n",
        "select sum(\n    a\n) as b\nfrom c",
        "select /* of\nall */ sum( a ) as b from c",
    ],
)
def test_a_checksum_knows_rows_from_layout(same: str) -> None:
    def of(code: str) -> Any:
        return macros().bare_code(code)

    assert of(same) == of("select sum(a) as b from c")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 1", "select 2"),
        ("select 'a  b'", "select 'a b'"),
        ("select '-- a' as b", "select '-- c' as b"),
        ("select 'it''s -- a' as b", "select 'it''s -- c' as b"),
        ("{{ a }}b", "{{ a }} b"),
        ("select 1 -- {{ lines('a') }}", "select 1 -- {{ lines('b') }}"),
        ("select 'a' /* ' */, 'b'", "select 'a', 'c'"),
        ('{{ f("(# a") }}', '{{ f("(# b") }}'),
    ],
)
def test_a_checksum_changes_with_whatever_may_make_other_rows(one: str, other: str) -> None:
    assert macros().bare_code(one) != macros().bare_code(other)


def macro(code: str, file: str = "macros/streams/a.sql", *calls: str) -> Any:
    """A macro as dbt's context has it."""
    return SimpleNamespace(
        macro=SimpleNamespace(
            macro_sql=code, original_file_path=file, depends_on=SimpleNamespace(macros=calls)
        )
    )


def checksum(code: str = "select 1", named: dict[str, Any] | None = None, **other: Any) -> Any:
    """Of a view that calls a macro of the project and one of a package.

    Args:
        code: The view's own.
        named: By macro, its code, where it is another one.
        other: What else is in dbt's context, and ``settings``.
    """
    codes = {"rate": "1", "key": "md5(a)", "hash": "2", "plan": "3", **(named or {})}
    context = {
        "millrace": {
            "rate": macro(codes["rate"], "macros/streams/rate.sql"),
            "plan": macro(codes["plan"], "macros/increments/plan.sql"),
        },
        "dbt_utils": {
            "key": macro(codes["key"], "macros/key.sql", "macro.dbt_utils.hash"),
            "hash": macro(codes["hash"], "macros/hash.sql", "macro.dbt.hash"),
        },
        "dbt": {"hash": macro("dbt's")},
    }
    calls = ["macro.millrace.rate", "macro.millrace.plan", "macro.dbt_utils.key"]
    view = Node(node("a", "view", code=code), depends_on=SimpleNamespace(nodes=[], macros=calls))
    return macros(context=context, **other).code_checksum(view)


@pytest.mark.parametrize(
    "named",
    [{}, {"rate": "{{ var('days') }}"}, {"hash": "{{ var('days') }}"}],
    ids=["of its own", "of a macro", "of a package's macro"],
)
def test_a_checksum_changes_with_a_variable_that_is_named_anywhere(named: dict[str, str]) -> None:
    code = "select 1" if named else "select {{ var('days') }}"

    assert checksum(code, named, settings={"days": 1}) != (
        checksum(code, named, settings={"days": 2})
    )


def test_a_checksum_changes_with_a_variable_of_the_environment() -> None:
    named = {"rate": "{{ env_var('EUR_RATE') }} {{ env_var('DBT_ENV_SECRET_A') }}"}

    def of(rate: str) -> Any:
        return checksum(named=named, env_var=lambda name, _: {"EUR_RATE": rate}[name])

    assert of("1") != of("2")


@pytest.mark.parametrize(
    ("name", "counts"), [("rate", True), ("key", True), ("hash", True), ("plan", False)]
)
def test_a_checksum_changes_with_macros_of_packages_too(name: str, *, counts: bool) -> None:
    assert (checksum() != checksum(named={name: "other"})) == counts


@pytest.mark.parametrize(
    ("types", "counts"),
    [
        ({"id": "varchar(8)"}, True),
        ({"name": "varchar(64)"}, True),
        ({"id": "bigint"}, False),
        ({"name": "varchar(16)"}, False),
    ],
    ids=["a key that is a text", "a text that a log leaves out", "a number", "a text"],
)
def test_a_checksum_changes_with_types_of_a_history_that_decide_rows(
    types: dict[str, str], *, counts: bool
) -> None:
    def of(**other: str) -> Any:
        types = {"id": "integer", "name": "varchar(20)", **other}
        history = Node(
            node("sale_history", "incremental"),
            columns={name: {"data_type": kind} for name, kind in types.items()},
            depends_on=SimpleNamespace(nodes=[], macros=["macro.millrace.change_history"]),
        )
        context = {"millrace": {"change_history": macro("a")}}
        return macros(context=context).code_checksum(history)

    assert (of() != of(**types)) == counts
