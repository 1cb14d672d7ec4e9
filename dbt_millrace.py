"""What dbt loads of Millrace: it imports each module that is named ``dbt_…`` as a plugin.

dbt-spark raises what Spark says with the plan of the statement, thirty lines of it, and
PySpark prints the same once more as a page of JSON. Here the console gets the error's class,
the object and the line; the log (``logs/dbt.log``) keeps all of it. On both engines the
console also gets the command that builds what is missing.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.plugins.manager import dbtPlugin
from dbt.task.retry import IGNORE_PARENT_FLAGS
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from spark_ingest.errors import spark_reason

if TYPE_CHECKING:
    import agate

_log = AdapterLogger("Spark")
# dbt writes a line before each statement that is not in the file that it names.
_COMMENT = re.compile(r"/\*.*?\*/\n")
# As Spark and as Redshift write it, of the schemas that dbt and ingest fill.
_MISSING = re.compile(
    r"(?:\[TABLE_OR_VIEW_NOT_FOUND\].*?`|relation \")"
    r"(?:\w+_)?(?P<schema>bronze|seeds|staging|intermediate|marts)(?:`\.`|\.)(?P<name>\w+)[`\"]"
)
# Spark's, of catalogs and of DROP, behind any relation that is missing.
_ADVICE = re.compile(r" Verify the spelling .*? DROP TABLE IF EXISTS\.")


class SparkErrors(dbtPlugin):
    """Errors of Spark in a few lines, whatever way dbt talks to it."""

    def initialize(self) -> None:
        # The profile is loaded by now, and its adapter with it: on Redshift there is no Spark.
        if "dbt.adapters.spark" not in sys.modules:
            return
        from dbt.adapters.spark.connections import SparkConnectionManager
        from dbt.adapters.spark.impl import SparkAdapter

        class ConnectionManager(SparkConnectionManager):
            """dbt-spark's, with errors that a person can read."""

            @contextmanager
            def exception_handler(self, sql: str) -> Iterator[None]:
                with in_short(sql):
                    yield

            @classmethod
            def get_result_from_cursor(cls, cursor: Any, limit: int | None) -> agate.Table:
                # Spark works when rows are fetched, which dbt does outside of the above.
                with in_short(""):
                    return super().get_result_from_cursor(cursor, limit)

        SparkAdapter.ConnectionManager = ConnectionManager
        # By name, for pyspark need not be there. It logs each error that it raises.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(name).disabled = True


class RedshiftErrors(dbtPlugin):
    """Errors of Redshift, with what to type where a relation is missing."""

    def initialize(self) -> None:
        if "dbt.adapters.redshift" not in sys.modules:
            return
        from dbt.adapters.redshift.connections import RedshiftConnectionManager
        from dbt.adapters.redshift.impl import RedshiftAdapter

        class ConnectionManager(RedshiftConnectionManager):
            """dbt-redshift's, with the step that is missing."""

            @contextmanager
            def exception_handler(self, sql: str) -> Iterator[None]:
                try:
                    with super().exception_handler(sql):
                        yield
                except DbtDatabaseError as error:
                    raise DbtDatabaseError(with_step(str(error.msg))) from error

        RedshiftAdapter.ConnectionManager = ConnectionManager


class Retries(dbtPlugin):
    """`dbt retry` after `dbt docs generate`, which dbt repeats with options that it lacks.

    See dbt-core's issue 10741.
    """

    def initialize(self) -> None:
        IGNORE_PARENT_FLAGS.update({"static", "empty_catalog"})


def with_step(message: str) -> str:
    """An error with the step that makes what it misses: a model, a seed or a bronze table."""
    missing = _MISSING.search(message)
    if missing is None:
        return message
    step = (
        "spark-ingest create"
        if missing["schema"] == "bronze"
        else f"dbt build --select +{missing['name']}"
    )
    first, *others = _ADVICE.sub("", message).splitlines()
    return "\n".join([f"{first}: run `{step}` first", *others])


@contextmanager
def in_short(sql: str) -> Iterator[None]:
    """Log an error in full, and raise what of it a person needs."""
    try:
        yield
    except Exception as error:
        # In-process, dbt-spark has wrapped it once already.
        text = _text_of(error.__cause__ or error)
        _log.debug(f"Error while running:\n{sql}\n{text}")
        comment = _COMMENT.match(sql)
        before = comment[0] if comment else ""
        reported = spark_reason(text, sql.removeprefix(before), before.count("\n"))
        raise DbtDatabaseError(with_step(reported)) from error


def _text_of(error: BaseException) -> str:
    """What Spark says: a Thrift server answers with a structure, or dbt-spark has read it."""
    if isinstance(error, DbtRuntimeError):
        return str(error.msg)
    answer = error.args[0] if error.args else None
    status = getattr(answer, "status", None)
    return str(getattr(status, "errorMessage", None) or error) or repr(error)


plugins = [SparkErrors, RedshiftErrors, Retries]
