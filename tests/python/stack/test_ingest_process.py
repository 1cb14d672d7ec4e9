"""`spark-ingest` as a process: killed, interrupted, refused, and what it says.

Fails when `spark-ingest` killed or interrupted loses a record, leaves a process, or gives no
fix.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
import pytest

from sandbox.settings import PROJECT
from spark_ingest.sources import fresh_manifest, read_streams
from tests.python.conftest import free_ports
from tests.python.programs import ran
from tests.python.stack.conftest import ORDER, Feed
from tests.python.world.avro import framed

PROGRAM = str(Path(sys.executable).parent / "spark-ingest")
SECONDS = 180


@contextmanager
def ingesting(feed: Feed, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`spark-ingest run` of a feed, ended with all it started."""
    process = subprocess.Popen(
        [PROGRAM, "--manifest", str(feed.manifest), "run", *options],
        cwd=PROJECT,
        env=feed.stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children: list[psutil.Process] = []
    try:
        yield process
    finally:
        if process.poll() is None:
            children = psutil.Process(process.pid).children(recursive=True)
            process.kill()
        process.wait(SECONDS)
        psutil.wait_procs(children, SECONDS)


def next_batch(out: IO[str] | None) -> dict[str, int]:
    assert out is not None
    line = out.readline()
    assert line, "the ingest ended before a batch"
    found: dict[str, int] = json.loads(line)
    return found


def mixed(schema_id: int, count: int, seed: int) -> list[bytes | None]:
    """Orders with some tombstones and some junk among them."""
    chance = random.Random(seed)
    values: list[bytes | None] = []
    for i in range(count):
        kind = chance.random()
        if kind < 0.02:
            values.append(None)
        elif kind < 0.05:
            values.append(b"junk %d" % i)
        else:
            values.append(framed(schema_id, ORDER, {"id": i, "note": "n" * chance.randrange(50)}))
    return values


@pytest.mark.long
def test_killed_at_any_moment_nothing_is_lost_or_doubled(feed: Feed) -> None:
    number = feed.register(ORDER)
    sent = {p: mixed(number, 3000, seed=p) for p in (0, 1)}
    for partition, values in sent.items():
        feed.send(*values, partition=partition)
    chance = random.Random(7)
    kills = 0
    for batches in (0, 2, 5):
        with ingesting(feed, "--once", "--max-batch", "300") as process:
            for _ in range(batches):
                next_batch(process.stdout)
            # Somewhere in the batch that follows; before the first, in the start-up.
            pause = chance.uniform(0, 0.8) if batches else chance.uniform(6, 12)
            try:
                process.wait(pause)
            except subprocess.TimeoutExpired:
                jvms = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                kills += 1
                # The JVM dies with its Python, by itself.
                _, alive = psutil.wait_procs(jvms, 30)
                assert not alive
    assert kills == 3
    done = feed.stack.run("spark-ingest", "--manifest", str(feed.manifest), "run", "--once")
    assert json.loads(done.stdout.splitlines()[-1])["lag"] == 0
    done = feed.stack.run("spark-ingest", "--manifest", str(feed.manifest), "verify")
    assert "all 6,000 records are in exactly one table, exactly once" in done.stdout

    # By the list of what was sent, too.
    junk = [
        (p, o, value)
        for p, values in sent.items()
        for o, value in enumerate(values)
        if value is not None and value.startswith(b"junk")
    ]
    spark = feed.services.spark
    aside = spark.table("lake.bronze.quarantine").where(f"_kafka_topic = '{feed.topic}'")
    held = [
        (row[0], row[1], bytes(row[2]))
        for row in aside.select("_kafka_partition", "_kafka_offset", "_kafka_value").collect()
    ]
    assert sorted(held) == sorted(junk)
    places = Counter(feed.offsets())
    assert set(places.values()) == {1}
    bad = {(p, o) for p, o, _ in junk}
    assert set(places) == {(p, o) for p in sent for o in range(3000)} - bad
    commits = spark.table(feed.table).select("_commit_id").distinct().collect()
    assert sorted(row[0] for row in commits) == list(range(1, len(commits) + 1))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_a_signal_ends_the_run_after_its_batch_and_leaves_nothing(
    feed: Feed, number: signal.Signals
) -> None:
    schema = feed.register(ORDER)
    feed.send(*mixed(schema, 10, seed=1))
    with ingesting(feed, "--every", "500ms") as process:
        next_batch(process.stdout)
        if number is signal.SIGINT:
            refused = feed.command("run", "--once").exception
            assert f"has a writer already (pid {process.pid} on " in str(refused)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        assert process.wait(60) == 0
        _, alive = psutil.wait_procs(started, 30)
        assert not alive
        said = process.stderr.read() if process.stderr else ""
        assert "stopping" in said
        assert "Traceback" not in said


def _lines(text: str) -> list[str]:
    """What a program said, without what the JVM says of itself."""
    return [line for line in text.splitlines() if line and not line.startswith("WARNING: Using")]


@pytest.mark.nightly
def test_what_is_missing_is_said_in_one_line_with_the_fix(feed: Feed, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\" 2025-10-21' >&2\n")
    java.chmod(0o755)
    cases: list[tuple[dict[str, str], str]] = [
        ({"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}, "sandbox up kafka"),
        (
            {"SCHEMA_REGISTRY_URL": f"http://127.0.0.1:{port}/apis/ccompat/v7"},
            "sandbox up registry",
        ),
        ({"SPARK_HOME": "/opt/some/spark"}, "unset SPARK_HOME"),
        ({"PATH": f"{tmp_path}:/usr/bin:/bin", "JAVA_HOME": ""}, "is Java 25"),
        ({"MILLRACE_MIN_FREE_MB": "999999999"}, "free some space"),
    ]
    for extra, said in cases:
        env = {**feed.stack.env, **extra}
        done = ran(
            [PROGRAM, "--manifest", str(feed.manifest), "run", "--once"], env=env, timeout=SECONDS
        )
        assert done.returncode == 2, done.stderr
        assert len(_lines(done.stderr)) == 1, done.stderr
        assert said in done.stderr


def test_a_missing_topic_is_named(feed: Feed) -> None:
    manifest = json.loads(feed.manifest.read_text())
    for node in manifest["sources"].values():
        node["config"]["meta"]["ingest"]["topic"] = "no.such.topic"
    feed.manifest.write_text(json.dumps(manifest))
    done = feed.stack.run(
        "spark-ingest", "--manifest", str(feed.manifest), "run", "--once", check=False
    )
    assert done.returncode == 2
    assert "topic no.such.topic (source test." in done.stderr
    assert len(_lines(done.stderr)) == 1
    done = feed.stack.run("spark-ingest", "--manifest", str(feed.manifest), "verify")
    assert "never started" in done.stdout


def test_wrong_use_is_reported(feed: Feed) -> None:
    for options, said in (
        ([], "either --once or --every"),
        (["--every", "soon"], "for example 10s"),
        (["--once", "nobody"], "'nobody' selects no stream"),
    ):
        done = feed.stack.run(
            "spark-ingest", "--manifest", str(feed.manifest), "run", *options, check=False
        )
        assert done.returncode == 2
        assert said in done.stderr


@pytest.mark.nightly
def test_the_manifest_is_parsed_when_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without --manifest the project's own streams are read, by dbt itself."""
    monkeypatch.setenv("DBT_TARGET_PATH", str(tmp_path))

    manifest = fresh_manifest(PROJECT)

    assert manifest == tmp_path / "manifest.json"
    assert "pagila.sales" in {stream.name for stream in read_streams(manifest)}
