"""A commit's id is the one behind the newest of its table."""

from __future__ import annotations

import pytest

from spark_ingest.commits.committed import Commit, check_number
from spark_ingest.errors import CommitRefused
from tests.python.interleavings.iceberg import Catalog, Metadata, Rows, Snapshot, Table
from tests.python.interleavings.schedule import Schedule, usual


def own(number: int, parent: int | None, commit_id: int) -> Snapshot:
    commit = Commit(commit_id, "topic", {0: 0}, {0: 1})
    return Snapshot(number, parent, commit.summary(), Rows())


def table(*snapshots: Snapshot) -> Table:
    """A table whose ``main`` is the last of these."""
    found = {snapshot.number: snapshot for snapshot in snapshots}
    metadata = Metadata(found, {"main": snapshots[-1].number})
    return Table(Catalog(Schedule(usual), compares_all=True), metadata)


def test_an_id_that_is_taken_or_leaves_one_out_is_refused() -> None:
    fence = Snapshot(4, 3, {}, Rows())
    here = table(own(2, None, 1), own(3, 2, 2), fence)

    check_number(here, 3)
    for taken in (1, 2, 4):
        with pytest.raises(CommitRefused, match=f"newest commit is 2, and {taken} cannot"):
            check_number(here, taken)


def test_what_is_no_commit_of_a_stream_has_no_id() -> None:
    check_number(table(own(2, None, 1)), None)


def test_a_table_whose_commits_have_expired_takes_any_id() -> None:
    check_number(table(Snapshot(9, None, {}, Rows())), 7)
