"""Errors of Spark as dbt gets them, in-process and over Thrift."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_millrace import in_short, with_step

REFUSED = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found."
    " SQLSTATE: 42P01; line 3 pos 5;\n'Project [*]\n+- 'UnresolvedRelation [a, b]\n"
)
SQL = '/* {"app": "dbt"} */\nselect *\nfrom a.b'
MESSAGE = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found."
    " (line 2, position 5)\nline 2: from a.b"
)


class ThriftError(Exception):
    """As PyHive's: its only argument is the server's answer."""


def message_of(error: Exception) -> str:
    with pytest.raises(DbtDatabaseError) as caught, in_short(SQL):
        raise error
    return str(caught.value.msg)


def test_an_error_is_reported_in_short_whatever_way_it_came() -> None:
    wrapped = DbtRuntimeError(REFUSED)
    wrapped.__cause__ = RuntimeError(REFUSED)
    status = SimpleNamespace(errorMessage=f"Error running query: {REFUSED}")

    assert message_of(RuntimeError(REFUSED)) == MESSAGE
    assert message_of(wrapped) == MESSAGE
    assert message_of(DbtDatabaseError(REFUSED)) == MESSAGE
    assert message_of(ThriftError(SimpleNamespace(status=status))) == MESSAGE


def test_an_error_without_words_keeps_its_name() -> None:
    assert message_of(EOFError()) == "EOFError()"


@pytest.mark.parametrize(
    ("missing", "step"),
    [
        ("`staging`.`stg_a`", "dbt build --select +stg_a"),
        ("`lake`.`dev_marts`.`fct_a`", "dbt build --select +fct_a"),
        ("`bronze`.`pagila__sales`", "spark-ingest create"),
    ],
)
def test_what_is_not_built_is_named_with_the_step_that_makes_it(missing: str, step: str) -> None:
    words = f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {missing} cannot be found."
    advice = " Verify the spelling and … DROP VIEW IF EXISTS or DROP TABLE IF EXISTS."

    assert with_step(f"{words}{advice}\nline 2: a") == f"{words}: run `{step}` first\nline 2: a"


def test_redshift_names_what_is_not_built_in_the_same_way() -> None:
    assert with_step('relation "marts.fct_a" does not exist').endswith(
        ": run `dbt build --select +fct_a` first"
    )
    assert with_step(REFUSED) == REFUSED
