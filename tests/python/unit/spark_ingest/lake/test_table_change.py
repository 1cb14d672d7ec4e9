"""What becomes of a change of a table that somebody else, or the catalog, came between."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException

from spark_ingest.errors import (
    CatalogUnavailable,
    CommitRefused,
    CommitUnknown,
    ConfigurationError,
    LeaseLost,
    MillraceError,
)
from spark_ingest.lake.table_change import Step, change_table, is_conflict

CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException"
UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException"
AWAY = "org.apache.iceberg.exceptions.ServiceUnavailableException"
INVALID = "org.apache.iceberg.exceptions.ValidationException"


def java(name: str, cause: object = None) -> SimpleNamespace:
    """A Java exception of this class."""
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: name),
        getMessage=lambda: "as Java shows it",
        getCause=lambda: cause,
        _target_id="o1",
        _gateway_client=None,
    )


def java_error(name: str, cause: object = None) -> Py4JJavaError:
    return Py4JJavaError("said", java(name, cause))


class Lake:
    """A JVM whose catalog fails as it is reported to, load by load and commit by commit."""

    def __init__(self, loads: list[Exception | None], commits: list[Exception | None]):
        self.loads = loads
        self.commits = commits
        self.committed = 0

    def iceberg_table(self, table: str) -> Any:
        if self.loads:
            error = self.loads.pop(0)
            if error is not None:
                raise error
        return self

    def commit(self) -> None:
        error = self.commits.pop(0) if self.commits else None
        if error is not None:
            raise error
        self.committed += 1


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_ingest.lake.table_change.time.sleep", lambda seconds: None)


def change(
    loads: list[Exception | None] | None = None,
    commits: list[Exception | None] | None = None,
    is_in: Callable[[Lake], bool] = lambda lake: False,
    **options: Any,
) -> Lake:
    lake = Lake(loads or [], commits or [])

    def plan(table: Lake) -> Step | None:
        return None if is_in(table) else table.commit

    jvm: Any = lake
    change_table(jvm, "bronze.t", plan, **options)
    return lake


def test_a_conflict_is_planned_and_made_again() -> None:
    lake = change(commits=[java_error(CONFLICT)] * 3)
    assert lake.committed == 1


def test_conflicts_without_an_end_are_a_refusal() -> None:
    with pytest.raises(CommitRefused, match=r"bronze.t changed concurrently: as Java"):
        change(commits=[java_error(CONFLICT)] * 100)


@pytest.mark.parametrize(
    "error", [java_error(INVALID), IllegalArgumentException("no ancestor of main")]
)
def test_what_the_table_cannot_take_is_not_tried_again(error: Exception) -> None:
    with pytest.raises(CommitRefused):
        change(commits=[error])
    with pytest.raises(ConfigurationError, match="such columns"):
        change(commits=[error], invalid=lambda _: ConfigurationError("such columns"))


def test_a_commit_whose_answer_was_lost_is_looked_for_before_it_is_made_again() -> None:
    found = change(commits=[java_error(UNKNOWN)], is_in=lambda lake: not lake.commits)
    assert found.committed == 0
    lost = change(commits=[java_error(UNKNOWN)])
    assert lost.committed == 1


def test_a_catalog_that_is_away_says_whether_anything_may_have_changed() -> None:
    away: list[Exception | None] = [java_error(AWAY)] * 3
    with pytest.raises(CatalogUnavailable, match="does not answer: as Java shows it"):
        change(loads=list(away))
    said = "did not say whether a commit is in"
    with pytest.raises(MillraceError, match=said) as left_open:
        change(loads=[None, *away], commits=[java_error(UNKNOWN)])
    assert left_open.type is CommitUnknown


def test_a_short_absence_of_the_catalog_is_waited_for() -> None:
    lake = change(loads=[java_error(AWAY), None])
    assert lake.committed == 1


def test_a_dropped_table_is_reported_as_one() -> None:
    with pytest.raises(MillraceError, match="was it dropped"):
        change(loads=[AnalysisException("not found")])


def test_what_a_plan_raises_ends_the_change() -> None:
    def lost(table: Any) -> Step | None:
        raise LeaseLost("taken over")

    jvm: Any = Lake([], [])
    with pytest.raises(LeaseLost):
        change_table(jvm, "bronze.t", lost)


def test_a_conflict_is_known_behind_what_spark_makes_of_it() -> None:
    assert is_conflict(java_error("org.apache.spark.SparkException", java(CONFLICT)))
    assert not is_conflict(java_error("org.apache.spark.SparkException"))
