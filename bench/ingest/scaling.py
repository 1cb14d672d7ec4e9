"""Millrace with more partitions, more and larger records, and separate executors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient

from bench.ingest.fixture import prepare
from bench.ingest.load import Shape
from bench.ingest.results import Case, Load
from bench.ingest.system_run import System, run
from bench.ingest.systems import CarelessJob, Millrace
from sandbox.install.parts import component_folder
from sandbox.settings import Home
from sandbox.ui import say

MOST_TIMES = 4
"""The largest topic has this many times the usual number of records."""

# With larger records a topic has fewer of them, to stay below this size.
_TOPIC_BYTES = 1_200_000_000
_FIELD_BYTES = 250


@dataclass(frozen=True)
class Trial:
    """One case, before it is measured.

    Attributes:
        series: What varies.
        name: Its value in this case.
        partitions: Number of partitions of the topic.
        shape: Shape of the records.
        system: The system under test: Millrace, or one to compare it with.
        records: Records in the topic; None for the usual number, or fewer if they are large.
    """

    series: str
    name: str
    partitions: int = 4
    shape: Shape = field(default_factory=Shape)
    system: System = field(default_factory=Millrace)
    records: int | None = None

    @property
    def topic(self) -> tuple[int, Shape, int | None]:
        """Properties of its topic: trials with the same properties share a topic."""
        return self.partitions, self.shape, self.records


def trials(usual: int) -> list[Trial]:
    """All cases; those that share a topic are adjacent.

    Args:
        usual: Default number of records in a topic.
    """
    few, many = usual // 5, usual * MOST_TIMES
    return [
        Trial("records", _millions(few), records=few),
        Trial("records", _millions(many), records=many),
        Trial("records", f"{_millions(many)}, careless", system=CarelessJob(), records=many),
        *(Trial("partitions", str(n), partitions=n) for n in (1, 2)),
        Trial("partitions", "4"),
        Trial("executors", "inside the driver, 2 cores"),
        Trial("executors", "1 process, 1 core", system=_cluster(1)),
        Trial("executors", "2 processes, 1 core each", system=_cluster(2)),
        Trial("record size", "133 B"),
        Trial("partitions", "8", partitions=8),
        *(
            Trial("record size", name, shape=Shape(value_bytes=size))
            for name, size in (("1 kB", 1_000), ("10 kB", 10_000))
        ),
        Trial(
            "record size", "10 kB, careless", shape=Shape(value_bytes=10_000), system=CarelessJob()
        ),
        *(Trial("fields", str(n), shape=Shape(n, _FIELD_BYTES)) for n in (5, 15, 60)),
    ]


def measure(home: Home, records: int) -> Iterator[Case]:
    """Measure all cases, one after the other.

    Args:
        home: A running sandbox.
        records: Default number of records in a topic.
    """
    every = trials(records)
    say(f"{len(every)} cases, a minute or two each")
    fixture, topic = None, None
    admin = AdminClient({"bootstrap.servers": home.bootstrap_servers, "log_level": 0})
    for number, trial in enumerate(every):
        if fixture is None or topic != trial.topic:
            if fixture is not None:
                # Free disk space for the next one.
                admin.delete_topics([fixture.topic])[fixture.topic].result()
            topic = trial.topic
            fitting = min(records, _TOPIC_BYTES // trial.shape.value_bytes)
            count = trial.records or fitting
            fixture = prepare(home, f"bench.scaling-{number}", count, trial.partitions, trial.shape)
        done = run(trial.system, fixture)
        say(f"  {trial.series} {trial.name}: {done.rate:,.0f} records/s")
        load = Load(fixture.sent, len(fixture.fields), fixture.partitions)
        yield Case(trial.series, trial.name, load, done)


def _millions(records: int) -> str:
    return f"{records / 1e6:g} M"


def _cluster(workers: int) -> Millrace:
    """Millrace on a Spark cluster with this many executors, each a JVM with one core."""
    settings = {
        "spark.master": f"local-cluster[{workers},1,2048]",
        "spark.executor.memory": "2g",
        "spark.executor.extraClassPath": f"{component_folder('spark')}/*",
    }
    return Millrace(settings=settings)
