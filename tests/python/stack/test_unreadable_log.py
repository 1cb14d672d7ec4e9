"""The commit log's files are away while streams work, begin again and start.

Fails when a commit log that cannot be read loses or doubles a record, or stays behind once it
can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from spark_ingest.commits import commit_log
from spark_ingest.lake.jvm import TROUBLE, Jvm
from tests.python.stack.conftest import ORDER, Feed, away, orders, proofs, running, wait_for
from tests.python.stack.test_trouble import logged, of

pytestmark = pytest.mark.nightly


def log_away(feed: Feed) -> AbstractContextManager[None]:
    """The log's folder is not there: no table can be loaded, read or written."""
    return away(feed, commit_log.TABLE)


@contextmanager
def manifests_away(feed: Feed) -> Iterator[None]:
    """The log's table can be loaded, and not read: its lists of manifests are not there."""
    log = Jvm(feed.services.spark).iceberg_table(commit_log.TABLE)
    metadata = Path(str(log.location()).removeprefix("file:")) / "metadata"
    lists = list(metadata.glob("snap-*.avro"))
    assert lists
    gone = [file.rename(file.with_suffix(".away")) for file in lists]
    try:
        yield
    finally:
        for file in gone:
            file.rename(file.with_suffix(".avro"))


@pytest.mark.parametrize("hide", [log_away, manifests_away])
def test_a_log_that_cannot_be_read_is_caught_up_when_it_can(
    feed: Feed,
    monkeypatch: pytest.MonkeyPatch,
    hide: Callable[[Feed], AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr("spark_ingest.commits.commit_log_writer._SECONDS", 0.3)
    monkeypatch.setattr("spark_ingest.streaming.supervise._FIRST_SECONDS", 0.5)
    number, notes = feed.register(ORDER), feed.reports.notes
    with running(feed) as failures:
        feed.send(*orders(number, 0, 1))
        wait_for(lambda: logged(feed) == [1])
        with hide(feed):
            # A flush fails, and the stream goes on.
            feed.send(*orders(number, 1, 1), b"junk")
            wait_for(lambda: of(feed, feed.reports.batches) == 3)
            wait_for(lambda: any("commit log is behind" in note for note in notes))
            # Begun again it reads the log before it may take anything.
            with away(feed):
                feed.send(*orders(number, 2, 1))
                wait_for(lambda: any(feed.stream.name in note for note in notes))
            before = len(notes)
            wait_for(lambda: len(notes) > before + 1)
            assert of(feed, feed.reports.batches) == 3
        wait_for(lambda: of(feed, feed.reports.batches) == 4)
        wait_for(lambda: logged(feed) == [1, 2, 3])
    assert failures == []
    assert feed.offsets() == [(0, 0), (0, 1), (0, 3)]
    assert feed.quarantined() == [(2, "not_framed")]
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.parametrize("hide", [log_away, manifests_away])
def test_a_start_that_cannot_read_the_log_takes_nothing(
    feed: Feed, hide: Callable[[Feed], AbstractContextManager[None]]
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2), b"junk")
    feed.ingest()
    feed.send(*orders(number, 2, 2))

    with hide(feed):
        with pytest.raises(TROUBLE):
            feed.ingest()
        typed = feed.command("run", "--once")

    assert typed.exit_code == 1
    assert isinstance(typed.exception, TROUBLE)
    assert logged(feed) == [1]
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (2, 2)
    assert logged(feed) == [1, 2]
    assert len(feed.offsets()) == 4
    assert all(proof.holds for proof in proofs(feed))
