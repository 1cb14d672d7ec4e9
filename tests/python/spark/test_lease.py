"""The lease on every kind of catalog: a take-over is a fence, and of two at once one wins.

Fails when a writer commits after another one took its table over, on any kind of catalog.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_ingest.commits import commit_log, lease, renewals
from spark_ingest.commits.committed import Commit, own_snapshots
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.renewals import Renewals
from spark_ingest.data_files.stage import append_rows
from spark_ingest.errors import CommitUnknown, LeaseLost
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import JAVA_ERRORS
from spark_ingest.lake.table_change import Step, is_conflict
from tests.python import catalogs
from tests.python.gate import Answer, Gate, Request
from tests.python.leases import take
from tests.python.spark.lakes import COLUMNS, Lake, each_way, meddle, with_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILURE = Answer(500, {"Content-Type": "application/json"}, b"{}")


def glue_lake(spark: SparkSession, before: Gate, folder: Path) -> Lake:
    settings = {
        "type": "glue",
        "glue.endpoint": before.address,
        "client.region": "us-east-1",
        "io_impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "warehouse": f"{folder}/warehouse",
    }
    return Lake(catalogs.use(spark, **settings), before, catalogs.is_glue_commit)


@pytest.fixture(scope="module")
def glue(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with catalogs.glue(spark) as before:
        yield glue_lake(spark, before, tmp_path_factory.mktemp("glue"))


AWS = pytest.param("glue", marks=[pytest.mark.aws, pytest.mark.long])


@pytest.fixture
def lake(request: pytest.FixtureRequest) -> Lake:
    """A lake in the catalog that the test is run for, with a table of its own."""
    made: Lake = request.getfixturevalue(request.param)
    return with_table(made, request.node.name)


every_catalog = pytest.mark.parametrize("lake", ["jdbc", "rest", AWS], indirect=True)
over_http = pytest.mark.parametrize("lake", ["rest", AWS], indirect=True)
without_a_server = pytest.mark.parametrize("lake", ["jdbc"], indirect=True)


@pytest.fixture
def all_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers that have the table count as gone."""
    monkeypatch.setattr(
        "spark_ingest.commits.lease.Holder.alive", lambda self, last_activity: False
    )


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases need a renewal at once."""
    monkeypatch.setattr(lease, "QUIET_SECONDS", 0)


def an_hour_later(patch: pytest.MonkeyPatch) -> None:
    real = time.time
    patch.setattr(time, "time", lambda: real() + 3600)


def on_another_host(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("spark_ingest.commits.lease.socket.gethostname", lambda: "elsewhere")


def metadata_of(lake: Lake, table: str) -> str:
    """Iceberg's current metadata file of a table."""
    return str(lake.jvm.iceberg_table(table).operations().current().metadataFileLocation())


def in_a_thread(work: Callable[[], object]) -> Future[object]:
    """Work that goes on beside the test."""
    threads = ThreadPoolExecutor(1)
    doing = threads.submit(work)
    threads.shutdown(wait=False)
    return doing


def held(lake: Lake, work: Callable[[], object]) -> tuple[Future[object], Callable[[], None]]:
    """Work whose first commit is on its way to the catalog; the second part lets it through."""
    assert lake.gate is not None
    stopped = lake.gate.hold(lake.is_commit)
    doing = in_a_thread(work)
    assert stopped.arrived.wait(60)
    return doing, stopped.released.set


@every_catalog
def test_a_fast_forward_under_way_is_refused_once_the_table_is_taken_over(
    lake: Lake, all_gone: None
) -> None:
    """The commit as Iceberg sends it, based on the table before the take-over."""
    asleep = take(lake.jvm, lake.table)
    lake.stage(asleep, 1)
    operations = lake.jvm.iceberg_table(lake.table).operations()
    base = operations.current()
    staged = base.ref(asleep._holder.branch).snapshotId()
    jvm: Any = lake.spark._jvm
    build = jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
    forwarded = build.setBranchSnapshot(staged, "main").build()
    awake = take(lake.jvm, lake.table)
    with pytest.raises(JAVA_ERRORS) as refused:
        operations.commit(base, forwarded)
    assert is_conflict(refused.value)
    with pytest.raises(LeaseLost, match="was taken over"):
        asleep.publish()
    asleep.release()
    awake.check()
    assert lake.ids() == []


@each_way
@over_http
def test_a_publish_on_its_way_to_the_catalog_is_refused_once_the_table_is_taken_over(
    lake: Lake, all_gone: None, stage: str
) -> None:
    asleep = take(lake.jvm, lake.table)
    getattr(lake, stage)(asleep, 1)
    publishing, let_through = held(lake, asleep.publish)
    awake = take(lake.jvm, lake.table)
    let_through()
    assert isinstance(publishing.exception(60), LeaseLost)
    getattr(lake, stage)(awake, 2)
    awake.publish()
    awake.release()
    assert lake.ids() == [2]


@every_catalog
def test_of_two_that_take_a_table_at_once_one_wins(lake: Lake) -> None:
    for _ in range(3):
        start = threading.Barrier(2)
        taken: list[Lease] = []

        def taking(start: threading.Barrier = start, taken: list[Lease] = taken) -> None:
            start.wait()
            taken.append(take(lake.jvm, lake.table))

        errors = [doing.exception(60) for doing in [in_a_thread(taking), in_a_thread(taking)]]
        (winner,) = taken
        winner.check()
        (loser,) = [error for error in errors if error is not None]
        assert isinstance(loser, LeaseLost)
        assert "has a writer already" in str(loser)
        winner.release()


@over_http
def test_a_take_on_its_way_to_the_catalog_gives_way_to_one_that_was_faster(lake: Lake) -> None:
    taking, let_through = held(lake, lambda: take(lake.jvm, lake.table))
    faster = take(lake.jvm, lake.table)
    let_through()
    assert isinstance(taking.exception(60), LeaseLost)
    faster.check()
    faster.release()


@over_http
def test_a_release_on_its_way_leaves_the_new_writer_its_lease(lake: Lake, all_gone: None) -> None:
    asleep = take(lake.jvm, lake.table)
    work, let_through = held(lake, asleep.release)
    awake = take(lake.jvm, lake.table)
    let_through()
    work.exception(60)
    lake.stage(awake, 1)
    awake.publish()
    awake.release()
    assert lake.ids() == [1]


@each_way
@over_http
def test_a_publish_whose_answer_was_lost_is_found_on_main(lake: Lake, stage: str) -> None:
    writer = take(lake.jvm, lake.table)
    getattr(lake, stage)(writer, 1)
    assert lake.gate is not None
    lake.gate.lose_answer(lake.is_commit)
    writer.publish()
    writer.release()
    assert lake.ids() == [1]
    assert len(own_snapshots(lake.jvm, lake.table)) == 1


@over_http
@pytest.mark.parametrize("repeated", ["take", "publish", "start_over"])
def test_a_commit_that_got_through_is_not_undone_by_the_answer_to_its_repetition(
    lake: Lake, repeated: str
) -> None:
    """As a client or a gateway repeats a request; the catalog refuses it the second time."""
    before = lake.gate
    assert before is not None

    def repeat(request: Request) -> Answer | None:
        before.answer(request)
        # Glue's client repeats a request that failed, and knows that it did.
        is_by_client = lake.is_commit is catalogs.is_glue_commit
        return FAILURE if is_by_client else before.answer(request)

    def begin_repeating(now: str) -> None:
        if now == repeated:
            before.treat(lake.is_commit, repeat)

    begin_repeating("take")
    writer = take(lake.jvm, lake.table)
    lake.stage_files(writer, 1)
    begin_repeating("publish")
    writer.publish()
    manifests = lake.jvm.iceberg_table(lake.table).currentSnapshot().manifestListLocation()
    assert Path(manifests.removeprefix("file:")).exists()
    begin_repeating("start_over")
    writer.start_over()
    lake.stage_files(writer, 2)
    writer.publish()
    writer.release()
    assert lake.ids() == [1, 2]
    assert [own.commit.id for own in own_snapshots(lake.jvm, lake.table)] == [2, 1]


@each_way
@over_http
def test_a_publish_that_is_late_comes_to_nothing_once_its_writer_has_started_over(
    lake: Lake, stage: str
) -> None:
    """Its batch was read again by then."""
    writer = take(lake.jvm, lake.table)
    getattr(lake, stage)(writer, 1)
    late: list[Request] = []
    before = lake.gate
    assert before is not None

    def delay(request: Request) -> Answer:
        late.append(request)
        return FAILURE

    with (
        before.treating(lake.is_commit, delay),
        pytest.raises(CommitUnknown, match="did not say whether"),
    ):
        writer.publish()
    writer.start_over()
    for request in late:
        before.answer(request)
    assert late
    assert lake.ids() == []
    getattr(lake, stage)(writer, 1)
    writer.publish()
    writer.release()
    assert lake.ids() == [1]


@each_way
@over_http
def test_a_publish_that_got_through_counts_though_the_table_was_taken_over_since(
    lake: Lake, all_gone: None, stage: str
) -> None:
    """Its quarantined records would be removed with a batch that is in bronze."""
    writer = take(lake.jvm, lake.table)
    getattr(lake, stage)(writer, 1)
    assert lake.gate is not None
    through, overtaken = threading.Event(), threading.Event()
    before = lake.gate

    def lose_late(request: Request) -> None:
        before.answer(request)
        through.set()
        assert overtaken.wait(60)

    before.treat(lake.is_commit, lose_late)
    publishing = in_a_thread(writer.publish)
    assert through.wait(60)
    awake = take(lake.jvm, lake.table)
    overtaken.set()
    assert publishing.exception(60) is None
    assert lake.ids() == [1]
    awake.release()


@over_http
def test_a_catalog_that_is_away_ends_no_renewal(lake: Lake, quiet: None) -> None:
    commit_log.create(lake.spark)
    ours = Renewals(lake.jvm)
    writer = Lease.take(lake.jvm, lake.table, ours)
    assert lake.gate is not None
    failed: list[Request] = []

    def fail(request: Request) -> Answer:
        failed.append(request)
        return FAILURE

    with lake.gate.treating(lake.is_commit, fail):
        ours.renew()
    assert failed
    assert 0 < ours._renew_at - time.monotonic() <= renewals._AGAIN_SECONDS
    writer.check()
    writer.release()


@pytest.mark.aws
@pytest.mark.long
def test_moto_alone_would_let_a_stale_commit_through(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """So the refusals of Glue seen here are the gate's, which does as Glue does."""
    with catalogs.glue(spark, strict=False) as before:
        made = with_table(glue_lake(spark, before, tmp_path), request.node.name)
        taking, let_through = held(made, lambda: take(made.jvm, made.table))
        faster = take(made.jvm, made.table)
        let_through()
        assert taking.exception(60) is None
        with pytest.raises(LeaseLost):
            faster.check()


@every_catalog
def test_one_renewal_shows_others_that_all_writers_of_a_process_live_and_changes_no_table(
    lake: Lake, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_log.create(lake.spark)
    ours = Renewals(lake.jvm)
    tables = [lake.table, with_table(lake, f"{lake.table}_2").table]
    writers = [Lease.take(lake.jvm, table, ours) for table in tables]
    others = with_table(lake, f"{lake.table}_3").table
    take(lake.jvm, others)
    before = [metadata_of(lake, table) for table in tables]
    an_hour_later(monkeypatch)
    ours.renew()
    assert [metadata_of(lake, table) for table in tables] == before
    on_another_host(monkeypatch)
    for table in tables:
        with pytest.raises(LeaseLost, match="has a writer already"):
            take(lake.jvm, table)
    # That process has not renewed.
    take(lake.jvm, others)
    lake.stage(writers[0], 1)
    writers[0].publish()
    for writer in writers:
        writer.release()
    assert lake.ids() == [1]


@over_http
@pytest.mark.parametrize("last", ["publish", "release"])
def test_a_lease_whose_commit_hangs_lapses_although_its_process_renews(
    lake: Lake, quiet: None, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    commit_log.create(lake.spark)
    ours = Renewals(lake.jvm)
    asleep = Lease.take(lake.jvm, lake.table, ours)
    lake.stage(asleep, 1)
    began = time.time()
    work, let_through = held(lake, getattr(asleep, last))
    an_hour_later(monkeypatch)
    ours.renew()
    assert 0 < renewals.renewed_at(lake.jvm, ours.process, asleep.branch) < began + 600
    on_another_host(monkeypatch)
    awake = take(lake.jvm, lake.table)
    let_through()
    work.exception(60)
    lake.stage(awake, 2)
    awake.publish()
    awake.release()
    assert lake.ids() == [2]


@without_a_server
def test_processes_that_do_not_renew_for_a_day_are_forgotten(lake: Lake, quiet: None) -> None:
    commit_log.create(lake.spark)
    processes = [Renewals(lake.jvm) for _ in range(3)]
    for days, process in zip((0, 0.5, 1.25), processes, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            now = time.time() + days * 86_400
            patch.setattr(time, "time", lambda now=now: now)
            process.add(take(lake.jvm, with_table(lake, f"{lake.table}_{days}").table))
            process.renew()
    log = lake.jvm.iceberg_table(commit_log.TABLE)
    known = [key.split(".")[-1] for key in log.properties() if "renewed" in key]
    assert sorted(known) == sorted(process.process for process in processes[1:])


@each_way
@every_catalog
def test_a_writer_that_restarts_on_another_host_with_its_id_goes_on_at_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    before = take(lake.jvm, lake.table, "ingest-1")
    getattr(lake, stage)(before, 1)
    monkeypatch.setattr("spark_ingest.commits.lease.socket.gethostname", lambda: "elsewhere")
    with pytest.raises(LeaseLost, match=r"has a writer already \(writer ingest-1, pid"):
        take(lake.jvm, lake.table, "ingest-2")
    after = take(lake.jvm, lake.table, "ingest-1")
    with pytest.raises(LeaseLost, match="was taken over"):
        before.publish()
    getattr(lake, stage)(after, 2)
    after.publish()
    after.release()
    assert lake.ids() == [2]


@every_catalog
def test_what_a_take_puts_on_main_is_no_commit_of_the_stream(lake: Lake) -> None:
    for number in (1, 2):
        writer = take(lake.jvm, lake.table)
        rows = lake.spark.createDataFrame([(number, "n")], COLUMNS).coalesce(1)
        commit = Commit(number, "topic", {0: number - 1}, {0: number})
        writer.stage(partial(append_rows, rows, commit))
        writer.publish()
        writer.release()
    assert [own.commit.id for own in own_snapshots(lake.jvm, lake.table)] == [2, 1]
    assert sorted(lake.jvm.iceberg_table(lake.table).refs()) == ["main"]


@without_a_server
def test_a_publish_is_made_again_where_another_commit_moved_the_table_but_not_main(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = take(lake.jvm, lake.table)
    lake.stage(writer, 1)

    def comment() -> None:
        update = lake.jvm.iceberg_table(lake.table).updateProperties()
        update.set("comment", "by somebody else").commit()

    done = meddle(monkeypatch, "spark_ingest.commits.lease", comment)
    writer.publish()
    assert done
    lake.stage(writer, 2)
    unstaged = meddle(monkeypatch, "spark_ingest.commits.branch", comment)
    writer.unstage()
    assert unstaged
    done.clear()
    writer.release()
    assert done
    assert lake.ids() == [1]


@each_way
@without_a_server
def test_a_publish_behind_a_compaction_is_made_again_where_a_ref_changed_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    writer = take(lake.jvm, lake.table)
    for number in (1, 2):
        getattr(lake, stage)(writer, number)
        writer.publish()
    getattr(lake, stage)(writer, 3)
    lake.spark.sql(f"call lake.system.rewrite_manifests('{lake.table}')").collect()
    iceberg = lake.jvm.iceberg_table(lake.table)
    assert iceberg.currentSnapshot().operation() == "replace"
    done: list[int] = []

    def commit_of_all(transaction: Any) -> Step:
        commit = table_change.commit_of_all(transaction)

        def step() -> None:
            if not done:
                done.append(1)
                references = lake.jvm.iceberg_table(lake.table).manageSnapshots()
                head = iceberg.currentSnapshot().snapshotId()
                references.createBranch("somebody_elses", head).commit()
            commit()

        return step

    monkeypatch.setattr("spark_ingest.commits.lease.commit_of_all", commit_of_all)
    writer.publish()
    writer.release()
    assert done
    assert lake.ids() == [1, 2, 3]
