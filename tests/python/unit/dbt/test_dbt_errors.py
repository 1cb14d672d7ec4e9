"""Errors of Spark as dbt gets them, in-process and over Thrift."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_millrace import in_short

REFUSED = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found."
    " SQLSTATE: 42P01; line 3 pos 5;\n'Project [*]\n+- 'UnresolvedRelation [a, b]\n"
)
SQL = '/* {"app": "dbt"} */\nselect *\nfrom a.b'
TOLD = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found."
    " (line 2, position 5)\nline 2: from a.b"
)


class ThriftError(Exception):
    """As PyHive's: its only argument is the server's answer."""


def told(error: Exception) -> str:
    with pytest.raises(DbtDatabaseError) as caught, in_short(SQL):
        raise error
    return str(caught.value.msg)


def test_an_error_is_told_in_short_whatever_way_it_came() -> None:
    wrapped = DbtRuntimeError(REFUSED)
    wrapped.__cause__ = RuntimeError(REFUSED)
    status = SimpleNamespace(errorMessage=f"Error running query: {REFUSED}")

    assert told(RuntimeError(REFUSED)) == TOLD
    assert told(wrapped) == TOLD
    assert told(DbtDatabaseError(REFUSED)) == TOLD
    assert told(ThriftError(SimpleNamespace(status=status))) == TOLD


def test_an_error_without_words_keeps_its_name() -> None:
    assert told(EOFError()) == "EOFError()"
