"""What becomes of quarantined records: listed, shown, replayed beside the stream, discarded.

Fails when a quarantined record is lost, lands twice when replayed, or has no reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import Result

from sandbox.settings import PROJECT
from spark_ingest.cli.quarantine import discard_records, list_groups, replayed_lines
from spark_ingest.commits import quarantine_table
from spark_ingest.commits.committed import CommitKind, own_snapshots
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import Jvm
from spark_ingest.quarantine import replay as replaying
from spark_ingest.quarantine.choice import Choice
from spark_ingest.quarantine.replay import Replayed, replay
from spark_ingest.quarantine.show import newest_record, record, screen
from spark_ingest.records import bronze_rows
from spark_ingest.streaming import side_commit
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, wait_for
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from spark_ingest.avro.schema import WriterSchema

UNKNOWN = 10**6
TAGGED = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "tag", "type": ["null", "string"], "default": None}],
}


def rows(feed: Feed) -> list[Row]:
    """The topic's quarantine rows, in the order of their positions."""
    table = feed.services.spark.table("lake.bronze.quarantine")
    mine = table.where(table["_kafka_topic"] == feed.topic)
    return mine.orderBy("_kafka_partition", "_kafka_offset").collect()


def states(feed: Feed) -> list[tuple[int, str, str]]:
    """(offset, error class, what became of it) of the topic's quarantine rows."""
    return [
        (
            row["_kafka_offset"],
            row["error_class"],
            "replayed" if row["replayed_at"] else "discarded" if row["discarded_at"] else "open",
        )
        for row in rows(feed)
    ]


def ingest_without(feed: Feed, schema_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what is there while the registry does not know a schema yet."""
    registry = feed.services.registry
    versions, schema = registry.subject_schemas, registry.schema

    def known_versions(*subject: Any) -> list[WriterSchema]:
        return [each for each in versions(*subject) if each.id != schema_id]

    def known(number: int, *kind: Any) -> WriterSchema | None:
        return None if number == schema_id else schema(number, *kind)

    with monkeypatch.context() as patch:
        patch.setattr(registry, "subject_schemas", known_versions)
        patch.setattr(registry, "schema", known)
        feed.ingest()


def tagged(schema_id: int, *numbers: int) -> list[bytes]:
    """Framed orders of the schema that has a tag."""
    return [framed(schema_id, TAGGED, {"id": i, "note": "n", "tag": f"t{i}"}) for i in numbers]


def test_every_reason_has_its_class_and_good_records_do_not_wait(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.register("int", f"{feed.topic}-key")
    ingest = feed.stream.ingest.model_copy(update={"max_value_bytes": 1000, "key": "confluent"})
    feed.stream = changed(feed.stream, ingest=ingest)
    good = framed(number, ORDER, {"id": 1, "note": "n"})
    long = framed(number, ORDER, {"id": 1, "note": "n" * 1000})
    key_id = feed.register("int", f"{feed.topic}-key")
    key = framed(key_id, "int", 4)
    feed.send(good, b"junk", good[:-1], good + b"\0", long, None, key=key)
    feed.send(framed(UNKNOWN, ORDER, {"id": 1, "note": ""}), key=key)
    feed.send(good, key=key + b"\0")
    feed.send(good, key=b"k" * 1001)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (2, 7)
    assert [(r["stage"], r["error_class"]) for r in rows(feed)] == [
        ("framing", "not_framed"),
        ("decode", "undecodable"),
        ("decode", "left_over_bytes"),
        ("size", "oversized"),
        ("schema", "unknown_id"),
        ("decode", "key_left_over_bytes"),
        ("size", "key_oversized"),
    ]
    assert bytes(rows(feed)[3]["_kafka_value"]) == long
    # A batch that is wholly bad moves on, and so does the stream behind it.
    feed.send(b"junk", b"junk", key=key)
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows, batch.quarantined) == (2, 0, 2)
    feed.send(good, key=key)
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows, batch.quarantined) == (3, 1, 0)
    assert all(proof.holds for proof in proofs(feed))
    lists_and_shows(feed, long)


def lists_and_shows(feed: Feed, long: bytes) -> None:
    """The same records, as `list` and `show` print them."""
    spark = feed.services.spark
    found = list_groups(spark, [feed.stream], None, None, everything=False, everywhere=False)
    assert [(g.error_class, g.open, g.first, g.last) for g in found] == [
        ("key_left_over_bytes", 1, "0:7", "0:7"),
        ("left_over_bytes", 1, "0:3", "0:3"),
        ("undecodable", 1, "0:2", "0:2"),
        ("not_framed", 3, "0:1", "0:10"),
        ("unknown_id", 1, "0:6", "0:6"),
        ("key_oversized", 1, "0:8", "0:8"),
        ("oversized", 1, "0:4", "0:4"),
    ]  # fmt: skip
    row, count = record(spark, feed.topic, 0, 4)
    lines = screen(row, count)
    assert len(lines) < 24
    assert "oversized" in "\n".join(lines)
    assert f"value      {len(long):,} bytes" in lines
    with pytest.raises(ConfigurationError, match=r"no record in quarantine for .* offset 0"):
        record(spark, feed.topic, 0, 0)
    choice = Choice((), "_kafka_offset between 1 and 2")
    row, count = newest_record(spark, [feed.stream], choice, False)
    assert (row["_kafka_offset"], count) == (2, 2)
    with pytest.raises(ConfigurationError, match="is not a valid condition over"):
        newest_record(spark, [feed.stream], Choice((), "no such thing ="), False)


def asked(feed: Feed, *words: str) -> Result:
    """What `spark-ingest quarantine` does."""
    return feed.command("quarantine", *words)


def test_the_commands_look_at_records_and_decide_about_them(feed: Feed, tmp_path: Path) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 1), b"junk \xff", b"more junk")
    feed.ingest()
    listed = asked(feed, "list", feed.stream.name, "--format", "json")
    (one,) = json.loads(listed.stdout)
    assert (one["stream"], one["error_class"], one["open"]) == (
        feed.stream.name, "not_framed", 2,
    )  # fmt: skip
    shown = asked(feed, "show", feed.topic, "0", "1")
    assert "6a 75 6e 6b 20 ff" in shown.stdout
    assert "junk ." in shown.stdout
    out = tmp_path / "value"
    newest = ("--where", f"_kafka_topic = '{feed.topic}'", "--out", str(out))
    assert asked(feed, "show", *newest).exit_code == 0
    assert out.read_bytes() == b"more junk"
    for words, said in (
        (["show", feed.topic], "give TOPIC PARTITION OFFSET"),
        (["show", feed.topic, "0", "0"], "no record in quarantine for"),
        (["discard", "--reason", " "], "--reason is empty"),
        (["discard", feed.stream.name, "--reason", "x"], "add --yes"),
        (["list", "--where", "no such"], "is not a valid condition over"),
        (["list", "nobody"], "selects no stream"),
    ):
        refused = asked(feed, *words)
        assert isinstance(refused.exception, ConfigurationError), refused.stdout
        assert said in str(refused.exception)
    replayed = asked(feed, "replay", "--dry-run")
    assert replayed.stdout.splitlines() == [
        f"{feed.stream.name}: 0 would be replayed",
        "  2 stay in quarantine: not_framed",
    ]
    first = ("--where", "_kafka_offset = 1", "--yes", "--reason", "a test of ours")
    discarded = asked(feed, "discard", feed.stream.name, *first)
    assert discarded.stdout.splitlines()[-1] == "discarded 1: a test of ours"
    assert states(feed) == [(1, "not_framed", "discarded"), (2, "not_framed", "open")]
    everything = asked(feed, "list", "--all", "--format", "json")
    (one,) = (g for g in json.loads(everything.stdout) if g["topic"] == feed.topic)
    assert (one["open"], one["discarded"], one["last"]) == (1, 1, "0:2")


@pytest.mark.long
def test_a_replay_killed_before_it_marked_marks_when_it_is_repeated(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, coming = feed.register(ORDER), feed.register(TAGGED)
    feed.send(*orders(number, 0, 1), *tagged(coming, *range(50)))
    ingest_without(feed, coming, monkeypatch)
    words = ["--manifest", str(feed.manifest), "quarantine", "replay"]
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "spark-ingest"), *words],
        cwd=PROJECT,
        env=feed.stack.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    jvm = Jvm(feed.services.spark)

    def is_published() -> bool:
        newest = own_snapshots(jvm, feed.stream.table)[0].commit
        assert process.poll() is None
        return newest.kind is CommitKind.REPLAY

    try:
        wait_for(is_published, 180)
    finally:
        process.kill()
        process.wait(60)
    assert {state for *_, state in states(feed)} == {"open"}
    assert len(feed.offsets()) == 51
    assert feed.stack.run("spark-ingest", *words).stdout.splitlines() == [
        f"{feed.stream.name}: 0 replayed",
        "  50 are in bronze already: marked as replayed",
    ]
    assert {state for *_, state in states(feed)} == {"replayed"}
    feed.ingest()
    assert feed.offsets() == [(0, i) for i in range(51)]
    assert all(proof.holds for proof in proofs(feed))


def test_replay_lands_what_is_good_now_where_it_was(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    services, spark = feed.services, feed.services.spark
    coming = feed.register(TAGGED)
    feed.send(*orders(number, 0, 1), b"junk", *tagged(coming, 7, 8))
    ingest_without(feed, coming, monkeypatch)
    assert "tag" not in spark.table(feed.table).columns
    assert states(feed) == [
        (1, "not_framed", "open"), (2, "unknown_id", "open"), (3, "unknown_id", "open"),
    ]  # fmt: skip
    before = {row["_kafka_offset"]: row for row in rows(feed)}

    would = replay(services, feed.stream, Choice(), dry_run=True)
    assert (would.landed, would.existing, dict(would.remaining)) == (2, 0, {"not_framed": 1})
    assert len(feed.offsets()) == 1

    # Killed between publishing and marking; repeated, it only marks.
    with monkeypatch.context() as patch:
        patch.setattr(table_change, "rewrite", killed)
        with pytest.raises(KeyboardInterrupt):
            replay(services, feed.stream, Choice())
    assert feed.offsets() == [(0, 0), (0, 2), (0, 3)]
    assert [state for *_, state in states(feed)] == ["open"] * 3
    would = replay(services, feed.stream, Choice(), dry_run=True)
    assert (would.landed, would.existing) == (0, 2)
    done = replay(services, feed.stream, Choice())
    assert (done.landed, done.existing, done.commits) == (0, 2, [])
    assert feed.offsets() == [(0, 0), (0, 2), (0, 3)]
    assert states(feed) == [
        (1, "not_framed", "open"),
        (2, "unknown_id", "replayed"),
        (3, "unknown_id", "replayed"),
    ]
    newest = own_snapshots(Jvm(spark), feed.stream.table)[0].commit
    assert (newest.id, newest.kind, newest.position) == (2, CommitKind.REPLAY, {0: 4, 1: 0})
    taken = spark.table(feed.table).where("_commit_id = 2").orderBy("_kafka_offset")
    for row in taken.collect():
        was = before[row["_kafka_offset"]]
        assert row["tag"] == f"t{row['id']}"
        assert row["_schema_id"] == coming
        for name in ("_kafka_timestamp", "_kafka_key", "_kafka_headers", "_kafka_topic_id"):
            assert row[name] == was[name]

    # The stream goes on behind it, and everything is accounted for.
    feed.send(*orders(number, 10, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 1)
    assert all(proof.holds for proof in proofs(feed))
    counts = feed.log().select("commit_id", "row_count", "quarantined_count")
    assert [tuple(row) for row in counts.collect()] == [(1, 1, 3), (2, 2, -2), (3, 1, 0)]
    assert replayed_lines(replay(services, feed.stream, Choice()), False) == [
        f"{feed.stream.name}: 0 replayed", "  1 stay in quarantine: not_framed",
    ]  # fmt: skip


@pytest.mark.long
def test_a_stream_and_two_replays_at_once_neither_lose_nor_double(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    services = feed.services
    coming = feed.register(TAGGED)
    feed.send(*orders(number, 0, 1), *tagged(coming, *range(20)), b"junk", b"junk")
    ingest_without(feed, coming, monkeypatch)
    monkeypatch.setattr(replaying, "CHUNK_ROWS", 8)
    other = replace(services, progress=feed.reports)
    results: list[Replayed] = []
    publish, land = side_commit.commit_beside, bronze_rows.table_rows

    def overtaken(spark: Any, stream: Any, uuid: Any, make: Any) -> Any:
        """While the first chunk is about to be published, others do the same, and more."""
        monkeypatch.setattr(replaying, "commit_beside", publish)
        results.append(replay(other, feed.stream, Choice(("unknown_id",))))
        feed.send(*orders(number, 30, 2), b"junk")
        feed.ingest()
        return publish(spark, stream, uuid, make)

    def rows_of_an_older_table(*args: Any) -> DataFrame:
        """Somebody adds a column between planning the rows and writing them."""
        planned = land(*args)
        monkeypatch.setattr(replaying, "table_rows", land)
        spark.sql(f"alter table {feed.table} add column late string")
        return planned

    spark = services.spark
    monkeypatch.setattr(replaying, "commit_beside", overtaken)
    monkeypatch.setattr(replaying, "table_rows", rows_of_an_older_table)
    results.append(replay(services, feed.stream, Choice(("unknown_id",))))
    (inner, outer) = results
    assert (inner.landed, outer.landed) == (20, 0)
    assert len(inner.commits) == 3
    assert feed.offsets() == [(0, i) for i in [*range(21), 23, 24]]
    assert [state for _, _, state in states(feed)].count("replayed") == 20
    assert all(proof.holds for proof in proofs(feed))

    # Others append to quarantine and rewrite it while rows are discarded.
    calls: list[str] = []

    def touch() -> None:
        calls.append("touch")
        spark.sql(
            "update lake.bronze.quarantine set error_message = 'changed' "
            f"where _kafka_topic = '{feed.topic}' and _kafka_offset = 21"
        )

    def keep_touching() -> None:
        for _ in range(3):
            table_change.rewrite(touch)

    with ThreadPoolExecutor(2) as others:
        updates = [others.submit(keep_touching) for _ in range(2)]
        feed.send(b"more junk")
        feed.ingest()
        count = discard_records(
            spark, [feed.stream], ["not_framed"], "_kafka_offset < 23", "noise", False
        )
        for each in updates:
            each.result()
    assert count == 2
    assert len(calls) > 6, "no rewrite met another: the test shows nothing"
    left = [state for state in states(feed) if state[1] == "not_framed"]
    assert left == [
        (21, "not_framed", "discarded"),
        (22, "not_framed", "discarded"),
        (25, "not_framed", "open"),
        (26, "not_framed", "open"),
    ]
    (discarded, *_) = (row for row in rows(feed) if row["_kafka_offset"] == 21)
    assert discarded["discard_reason"] == "noise"
    assert bytes(discarded["_kafka_value"]) == b"junk"
    found = proofs(feed)
    assert [proof.discarded for proof in found] == [2, 0]
    assert all(proof.holds for proof in found)
    assert replay(services, feed.stream, Choice(), dry_run=True).remaining["not_framed"] == 2
    chosen = Choice(discarded=True)
    assert replay(services, feed.stream, chosen, dry_run=True).remaining["not_framed"] == 4


@pytest.mark.nightly
def test_what_an_overtaken_writer_left_goes_and_what_is_there_once_stays(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 1), b"junk", b"junk")
    feed.ingest()
    spark = feed.services.spark
    columns = ", ".join(quarantine_table.COLUMNS.names)
    # Of its batch the first was good in its successor's, the second bad there as well.
    strays = columns.replace("_kafka_offset", "_kafka_offset - 1").replace(
        "_ingested_at", "_ingested_at - interval 1 second"
    )
    spark.sql(
        f"insert into lake.bronze.quarantine select {strays} from lake.bronze.quarantine "
        f"where _kafka_topic = '{feed.topic}'"
    )
    assert sum(proof.doubled for proof in proofs(feed)) == 2
    # A row that no commit accounts for, and that is held nowhere else.
    spark.sql(
        "update lake.bronze.quarantine set _ingested_at = _ingested_at - interval 1 hour "
        f"where _kafka_topic = '{feed.topic}' and _kafka_offset = 2"
    )
    feed.ingest()
    assert [offset for offset, *_ in states(feed)] == [1, 2]
    assert all(proof.holds for proof in proofs(feed))


def killed(*_: object) -> None:
    raise KeyboardInterrupt
