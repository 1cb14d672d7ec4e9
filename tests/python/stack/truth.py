"""What captures databases is restarted and killed while they change; then all is compared."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

import psutil

from sandbox.install import spark_conf
from sandbox.processes import process, programs
from sandbox.processes.process import read_record
from sandbox.services import stack as services
from sandbox.services.connect import FAILED, connector_status, wait_until_passed
from sandbox.services.stack import SERVICES
from sandbox.settings import Home
from tests.python.conftest import Stack, program_environment
from tests.python.parity.relations import Relation, from_spark, load
from tests.python.parity.trial import ENGINES, external_schema, read_standin, standin_dbt
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import at_work
from tests.python.stack.truth_databases import Captured, Lane, Moment, State, Writer, compared

INSTANTS = 10
_LEAST_INCREMENTS = 2
_BETWEEN_FAULTS = (2.0, 10.0)
_END_SECONDS = 240.0
_GRACE_SECONDS = 20.0
# A build may take longer than the time from one new column to the next.
_AGAIN = 3
_GREW = "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS"

Fault = tuple[str, str]
"""What is done, and to whom: ``("kill", "connect")``."""


@dataclass
class Found:
    """What a run did, and what came of it.

    Attributes:
        changes: Committed ones, by database.
        moments: How many states were logged, by database.
        faults: What was done to the services, in order.
        increments: Rounds of dbt beside the changes.
        cells: How many were compared.
        differences: Each in a line; none is what is wanted.
    """

    changes: dict[str, int] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    increments: int = 0
    cells: int = 0
    differences: list[str] = field(default_factory=list, repr=False)


class Ingest:
    """`spark-ingest run` of the lanes, which can be ended in several ways.

    Args:
        stack: The services.
        streams: The lanes' tables.
    """

    def __init__(self, stack: Stack, streams: Sequence[str]) -> None:
        self._stack = stack
        self._streams = streams
        self._running: subprocess.Popen[bytes] | None = None
        self._begun = 0

    def start(self) -> None:
        with self._log().open("ab") as log:
            self._begun = log.tell()
            self._running = subprocess.Popen(
                [programs.path_of("spark-ingest"), *("run", *self._streams, "--every", "1s")],
                env=self._stack.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it lands records."""
        end = time.monotonic() + _END_SECONDS
        while b'"event": "batch"' not in self._log().read_bytes()[self._begun :]:
            self.check()
            assert time.monotonic() < end, f"it lands nothing: {self._last_words()}"
            time.sleep(0.5)

    def check(self) -> None:
        """It has not ended by itself."""
        assert self._running is not None
        code = self._running.poll()
        assert code is None, f"the ingest ended with {code}: {self._last_words()}"

    def end(self) -> None:
        """As Ctrl-C would, at work."""
        self.wait()
        assert self._running is not None
        self._running.send_signal(signal.SIGINT)
        code = self._running.wait(_END_SECONDS)
        process.end_left_over(self._running.pid, _GRACE_SECONDS)
        words = self._last_words()
        # Stopped while Kafka comes back it exits with 1, and names the streams that wait for it
        # and no others.
        last = words.rstrip().rpartition("\n")[2]
        failed = re.search(r"(\d+) of \d+ streams failed: ", last)
        is_waiting = failed and last.count(": Kafka at ") == int(failed[1])
        assert code in {0, 130} or is_waiting, f"it ended with {code}: {words}"

    def kill(self, what: str) -> None:
        """SIGKILL to the ``python`` or its ``jvm``; the other one ends by itself."""
        assert self._running is not None
        python = psutil.Process(self._running.pid)
        family = [*python.children(recursive=True), python]
        for one in family if what == "jvm" else [python]:
            if what == "python" or "java" in one.name():
                one.kill()
        self._running.wait(_END_SECONDS)
        process.end_left_over(self._running.pid, _GRACE_SECONDS)

    def close(self) -> None:
        if self._running is not None and self._running.poll() is None:
            process.end_group(self._running.pid, 10)
            self._running.wait()

    def _last_words(self) -> str:
        return self._log().read_bytes()[-3000:].decode(errors="replace")

    def _log(self) -> Path:
        return self._stack.home.logs / "ingest.log"


class Trial:
    """One run: changes, faults and increments at once, then the comparison.

    Args:
        home: A new sandbox on free ports.
        lanes: What is followed.
        seed: Of all that is random, but for the moments at which things meet.
        seconds: How long the databases change.
    """

    def __init__(self, home: Home, lanes: Sequence[Lane], seed: int, seconds: float) -> None:
        self.home = home
        self.lanes = lanes
        self.seconds = seconds
        self.found = Found()
        self._begun = time.monotonic()
        self._random = Random(seed)
        self._stack = Stack(home, program_environment(home))
        self._ingest = Ingest(self._stack, self._streams())
        self._writers = [
            Writer(home, lane, seed + at, self._report) for at, lane in enumerate(lanes)
        ]
        self._stopping, self._logging = threading.Event(), threading.Event()
        self._project = home.path / "project"

    def run(self) -> Found:
        """Do all of it.

        Raises:
            Exception: What failed on the way, such as dbt, a service or a writer.
        """
        databases = sorted({lane.database.engine for lane in self.lanes})
        copy_project(self._project)
        spark_conf.bring_spark()
        spark_conf.render(self.home, self.home.spark_conf)
        try:
            services.up(self.home, ["kafka", "registry", "redshift", *databases])
            for writer in self._writers:
                writer.fill()
            with (
                at_work(self.home, self._project) as self._do,
                ThreadPoolExecutor(len(self._writers) + 1) as pool,
            ):
                try:
                    self._change(pool)
                finally:
                    self._stopping.set()
                self._catch_up()
                self._compare()
        finally:
            self._stopping.set()
            self._ingest.close()
            services.down(self.home)
        return self.found

    def _change(self, pool: ThreadPoolExecutor) -> None:
        """Capture begins in the midst of changes; all ends but what is captured by then."""
        work = [
            pool.submit(writer.write, self._stopping, self._logging) for writer in self._writers
        ]
        self._report("capture begins")
        services.up(self.home, ["connect"])
        self._pass()
        # What was before the snapshot nobody knows but by what it says.
        self._logging.set()
        self._stack.run("spark-ingest", "create", *self._streams())
        self._ingest.start()
        self._first_build()
        work.append(pool.submit(self._increments))
        end = time.monotonic() + self.seconds
        for fault in self._faults():
            self._wait(self._random.uniform(*_BETWEEN_FAULTS), end, work)
            if time.monotonic() >= end:
                break
            self._bring_about(*fault)
        # However slow the machine is, one increment follows another beside the changes.
        while self.found.increments < _LEAST_INCREMENTS:
            self._wait(1, math.inf, work)
        self._stopping.set()
        for one in work:
            one.result(_END_SECONDS)

    def _wait(self, seconds: float, end: float, work: Sequence[Future[None]]) -> None:
        until = min(time.monotonic() + seconds, end)
        while time.monotonic() < until:
            for one in work:
                if one.done():
                    one.result()
            self._ingest.check()
            time.sleep(0.2)

    def _faults(self) -> Iterator[Fault]:
        """Each is restarted once and one is killed, in any order; then whatever comes."""
        everybody = ("connect", "kafka", "ingest")
        first = [("restart", name) for name in everybody]
        first.append(("kill", self._random.choice(everybody)))
        self._random.shuffle(first)
        yield from first
        while True:
            how = self._random.choice(("restart", "kill"))
            yield (how, self._random.choice(everybody))

    def _bring_about(self, how: str, name: str) -> None:
        done = f"{how} {name}"
        if name == "ingest":
            if how == "kill":
                half = self._random.choice(("python", "jvm"))
                done += f"'s {half}"
                self._ingest.kill(half)
            else:
                self._ingest.end()
            self._ingest.start()
        else:
            if name == "kafka":
                # Without Kafka an ingest that is at work waits, and one that starts ends.
                self._ingest.wait()
            if how == "kill":
                record = read_record(SERVICES[name].folder(self.home))
                assert record is not None
                os.kill(record.pid, signal.SIGKILL)
            services.down(self.home, [name])
            time.sleep(self._random.uniform(0, 3))
            services.up(self.home, [name])
        self.found.faults.append((how, name))
        self._report(done)

    def _increments(self) -> None:
        """Rounds of dbt on both engines, until the changes end."""
        random = Random(self._random.random())
        while not self._stopping.wait(random.uniform(0, 4)):
            begun = time.monotonic()
            self._increment()
            self.found.increments += 1
            changes = ", ".join(
                f"{one.lane.database.name} {one.changes:,}" for one in self._writers
            )
            seconds = time.monotonic() - begun
            self._report(
                f"increment {self.found.increments} in {seconds:.0f} s; changes: {changes}"
            )

    def _on_both(self, *words: str) -> None:
        """Let dbt do the same on both engines at once."""
        standin = standin_dbt(self.home, *words, project=self._project)
        done = self._do({"together": [{"dbt": list(words)}, standin]})
        for _ in range(_AGAIN):
            if _GREW not in done[0]["said"]:
                break
            # Spark takes no statement whose table grew a column since it was read.
            self._report(f"dbt {words[0]} again: a bronze table grew a column meanwhile")
            done[0] = self._do({"dbt": list(words)})
        for engine, ended in zip(ENGINES, done, strict=True):
            assert ended["success"], f"dbt {words} on {engine}: {ended['said']}"

    def _first_build(self) -> None:
        external = self._do(external_schema(self.home, self._project))
        assert external["success"], external["said"]
        held = (f"+{captured.held}" for captured in self._tables())
        no_tests = ("--exclude-resource-type", "test", "unit_test")
        self._on_both("build", *no_tests, "--select", *held)

    def _increment(self) -> None:
        self._on_both("run", "--select", *(one.history for one in self._tables()))

    def _tables(self) -> list[Captured]:
        return [captured for lane in self.lanes for captured in lane.tables]

    def _pass(self) -> None:
        """All that is committed by now is in Kafka; connectors that failed are reported."""
        for status in connector_status(self.home):
            if status.state == FAILED:
                self._report(f"{status.name} had failed: {status.reason}")
                services.up(self.home, ["connect"])
        for lane in self.lanes:
            wait_until_passed(self.home, lane.database.connector)

    def _catch_up(self) -> None:
        self._pass()
        self._ingest.end()
        self._stack.run("spark-ingest", "run", "--once", *self._streams())
        self._report("all is in bronze")
        self._increment()

    def _compare(self) -> None:
        """All tables now, and their histories at some of the moments, on both engines."""
        chosen = {}
        for writer in self._writers:
            name, moments = writer.lane.database.name, writer.moments
            self.found.changes[name] = writer.changes
            self.found.moments[name] = len(moments)
            some = self._random.sample(moments, min(INSTANTS, len(moments)))
            chosen[name] = sorted(some, key=lambda moment: moment.at)
        relations = self._read(chosen)
        for writer in self._writers:
            now = writer.state()
            for engine, captured in product(ENGINES, writer.lane.tables):
                held = relations[engine][f"intermediate.{captured.held}"]
                states = [(f"{captured.held} on {engine}", now, held)]
                at_instants = relations[engine][f"truth.{captured.instants}"]
                states += [
                    (
                        f"{captured.history} on {engine} at {moment.at}",
                        moment.state,
                        _of_instant(at_instants, at),
                    )
                    for at, moment in enumerate(chosen[writer.lane.database.name])
                ]
                self._hold(writer, captured, states)

    def _read(self, chosen: Mapping[str, Sequence[Moment]]) -> dict[str, dict[str, Relation]]:
        """By engine: what is held, and what was at the instants, as anybody asks for it."""
        models = self._project / "models/truth"
        models.mkdir()
        names = []
        for lane in self.lanes:
            for captured in lane.tables:
                text = _model(captured, chosen[lane.database.name])
                (models / f"{captured.instants}.sql").write_text(text)
                names += [f"intermediate.{captured.held}", f"truth.{captured.instants}"]
        self._on_both("run", "--select", "path:models/truth")
        file = self.home.path / "standin.json"
        read, reported = self._do(
            {"together": [{"read": names}, read_standin(self.home, names, file)]}
        )
        assert reported["success"], reported["said"]
        spark = {name: from_spark(relation) for name, relation in read.items()}
        return dict(zip(ENGINES, (spark, load(file)), strict=True))

    def _hold(
        self, writer: Writer, captured: Captured, states: Sequence[tuple[str, State, Relation]]
    ) -> None:
        """What a table held by the database against what it held by a model."""
        before = self.found.cells
        differences = []
        for where, state, held in states:
            cells, reported = compared(writer.lane, captured, state, held, writer.rekeyed)
            self.found.cells += cells
            differences += [f"{where}, {one}" for one in reported]
        self.found.differences += differences
        self._report(
            f"{states[0][0]}, and at {len(states) - 1} instants:"
            f" {self.found.cells - before:,} cells, {len(differences)} differences"
        )

    def _streams(self) -> list[str]:
        return [
            f"{lane.source}.{captured.table}" for lane in self.lanes for captured in lane.tables
        ]

    def _report(self, text: str) -> None:
        print(f"[{time.monotonic() - self._begun:5.0f} s] {text}", flush=True)


def _model(captured: Captured, moments: Sequence[Moment]) -> str:
    """A table of what was held at each instant, as anybody would ask for it."""
    states = [
        f"select cast({at} as integer) as instant_number, state.* from (\n"
        f"{{{{ state_as_of(ref('{captured.history}'),"
        f" \"cast('{moment.at.isoformat(' ')}' as timestamp)\") }}}}\n) as state\n"
        for at, moment in enumerate(moments)
    ]
    return "{{ config(materialized='table', schema='truth') }}\n" + "union all\n".join(states)


def _of_instant(relation: Relation, number: int) -> Relation:
    """Of the states at all instants that of one, without the instant's number."""
    at = [column.name for column in relation.columns].index("instant_number")
    return Relation(
        (*relation.columns[:at], *relation.columns[at + 1 :]),
        tuple((*row[:at], *row[at + 1 :]) for row in relation.rows if row[at] == str(number)),
    )
