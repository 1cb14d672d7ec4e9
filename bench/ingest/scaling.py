"""Our engine on more partitions and records, larger ones, and executors of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient

from bench.ingest.contest import Contestant, run
from bench.ingest.contestants import CarelessJob, Millrace
from bench.ingest.ground import prepare
from bench.ingest.load import Shape
from bench.ingest.results import Case, Load
from sandbox.install.parts import component_folder
from sandbox.settings import Home
from sandbox.ui import say

MOST_TIMES = 4
"""The longest topic has so many times the usual number of records."""

# Larger records are fewer, so that a topic stays below this.
_TOPIC_BYTES = 1_200_000_000
_FIELD_BYTES = 250


@dataclass(frozen=True)
class Trial:
    """One case, before it is measured.

    Attributes:
        series: What changes.
        name: To what.
        partitions: Of the topic.
        shape: Of the records.
        contestant: Who takes them: ours, or one that it is held against.
        records: Of the topic; None for the usual number, or fewer where they are large.
    """

    series: str
    name: str
    partitions: int = 4
    shape: Shape = field(default_factory=Shape)
    contestant: Contestant = field(default_factory=Millrace)
    records: int | None = None

    @property
    def topic(self) -> tuple[int, Shape, int | None]:
        """What its topic must be like: trials with the same can share one."""
        return self.partitions, self.shape, self.records


def trials(usual: int) -> list[Trial]:
    """All cases; those that share a topic stand together.

    Args:
        usual: Records of a topic where nothing else is said.
    """
    few, many = usual // 5, usual * MOST_TIMES
    return [
        Trial("records", _millions(few), records=few),
        Trial("records", _millions(many), records=many),
        Trial("records", f"{_millions(many)}, careless", contestant=CarelessJob(), records=many),
        *(Trial("partitions", str(n), partitions=n) for n in (1, 2)),
        Trial("partitions", "4"),
        Trial("executors", "inside the driver, 2 cores"),
        Trial("executors", "1 process, 1 core", contestant=_cluster(1)),
        Trial("executors", "2 processes, 1 core each", contestant=_cluster(2)),
        Trial("record size", "133 B"),
        Trial("partitions", "8", partitions=8),
        *(
            Trial("record size", name, shape=Shape(value_bytes=size))
            for name, size in (("1 kB", 1_000), ("10 kB", 10_000))
        ),
        *(Trial("fields", str(n), shape=Shape(n, _FIELD_BYTES)) for n in (5, 15, 60)),
    ]


def measure(home: Home, records: int) -> Iterator[Case]:
    """Measure all cases, one after the other.

    Args:
        home: A sandbox that runs.
        records: The usual number in a topic.
    """
    every = trials(records)
    say(f"{len(every)} cases, a minute or two each")
    ground, topic = None, None
    admin = AdminClient({"bootstrap.servers": home.bootstrap_servers, "log_level": 0})
    for number, trial in enumerate(every):
        if ground is None or topic != trial.topic:
            if ground is not None:
                # Room for the next one.
                admin.delete_topics([ground.topic])[ground.topic].result()
            topic = trial.topic
            fitting = min(records, _TOPIC_BYTES // trial.shape.value_bytes)
            count = trial.records or fitting
            ground = prepare(home, f"bench.scaling-{number}", count, trial.partitions, trial.shape)
        done = run(trial.contestant, ground)
        say(f"  {trial.series} {trial.name}: {done.rate:,.0f} records/s")
        load = Load(ground.sent, len(ground.fields), ground.partitions)
        yield Case(trial.series, trial.name, load, done)


def _millions(records: int) -> str:
    return f"{records / 1e6:g} M"


def _cluster(workers: int) -> Millrace:
    """Ours with a master of Spark's own and so many executors, each a JVM with one core."""
    settings = {
        "spark.master": f"local-cluster[{workers},1,2048]",
        "spark.executor.memory": "2g",
        "spark.executor.extraClassPath": f"{component_folder('spark')}/*",
    }
    return Millrace(settings=settings)
