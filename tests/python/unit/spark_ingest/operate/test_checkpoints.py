"""When a checkpoint of verify is valid, by the table's snapshots and rows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from spark_ingest.operate.checkpoints import (
    Checkpoint,
    CurrentSnapshot,
    current_snapshot,
    is_untouched,
)

if TYPE_CHECKING:
    from spark_ingest.lake.jvm import Jvm

CHECKPOINT = Checkpoint("T", 5, snapshot_id=1, records=100, partitions={}, at=datetime.now(UTC))


def snapshot(number: int, parent: int | None, said: dict[str, str], done: str = "append") -> Any:
    return SimpleNamespace(
        number=number,
        snapshotId=lambda: number,
        parentId=lambda: parent,
        summary=lambda: said,
        operation=lambda: done,
    )


def jvm(*snapshots: Any) -> Jvm:
    """A session's JVM with one table; the last snapshot is its current one."""
    by_id = {each.number: each for each in snapshots}
    table = SimpleNamespace(
        currentSnapshot=lambda: snapshots[-1] if snapshots else None, snapshot=by_id.get
    )
    return cast("Jvm", SimpleNamespace(iceberg_table=lambda _: table))


def own(number: int, parent: int | None, commit: int) -> Any:
    said = {"millrace.commit-id": str(commit), "added-records": "10"}
    return snapshot(number, parent, {**said, "total-records": str(100 + 10 * commit)})


def counts(added: int, deleted: int, done: str) -> Any:
    said = {"added-records": str(added), "deleted-records": str(deleted)}
    return snapshot(3, 2, said, done)


def untouched(*snapshots: Any, records: int = 110) -> bool:
    now = CurrentSnapshot(snapshots[-1].number, 6, records, has_deletes=False)
    return is_untouched(jvm(*snapshots), "bronze.a", CHECKPOINT, now, 10)


def test_own_commits_and_compactions_keep_a_checkpoint() -> None:
    begun = own(1, None, 5)
    assert untouched(begun, own(2, 1, 6))
    assert untouched(begun, own(2, 1, 6), counts(40, 40, "replace"))
    assert untouched(begun, own(2, 1, 6), counts(0, 0, "append"))


@pytest.mark.parametrize(
    "foreign",
    [
        counts(1, 1, "overwrite"),
        counts(1, 0, "append"),
        counts(0, 1, "delete"),
        counts(40, 39, "replace"),
        own(3, 2, 4),
    ],
)
def test_commits_of_others_invalidate_a_checkpoint(foreign: Any) -> None:
    assert not untouched(own(1, None, 5), own(2, 1, 6), foreign)


def test_behind_expired_snapshots_the_number_of_rows_shows() -> None:
    assert untouched(own(3, 2, 6))
    assert not untouched(own(3, 2, 6), records=109)
    assert not untouched(own(3, 2, 6), records=111)


def test_a_rollback_to_before_the_checkpoint_invalidates_it() -> None:
    assert not untouched(own(4, None, 5), own(5, 4, 6))


def test_a_head_is_reported_with_the_newest_own_commit() -> None:
    reported = {"total-records": "7", "total-delete-files": "1"}
    table = jvm(own(1, None, 5), snapshot(2, 1, reported, "replace"))
    assert current_snapshot(table, "bronze.a") == CurrentSnapshot(2, 5, 7, has_deletes=True)
    assert current_snapshot(jvm(), "bronze.a") is None
    expired = jvm(snapshot(2, 1, {"total-records": "7"}, "replace"))
    assert current_snapshot(expired, "bronze.a") == CurrentSnapshot(2, None, 7, has_deletes=False)
