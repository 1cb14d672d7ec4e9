"""What was measured, as a file keeps it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.ingest.load import Sent
from bench.report.results import About, Kept, read_kept

CARELESS = "careless spark job"


class Run(Kept):
    """One run of one contestant.

    Attributes:
        records: That it read.
        seconds: From the first read to the last record that a reader can see.
        cpu_seconds: User and system time of all its processes in that time.
        peak_rss_mb: The most memory that they had together, MiB.
        load: Load average of the machine before it, over a minute.
        loses: What it did not keep.
    """

    records: int
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    load: float
    loses: str


class Row(Kept):
    """One contestant: medians of its runs.

    Attributes:
        name: Ours begin with ``millrace``, limits with ``limit``.
        records_per_second: Records that it read.
        mb_per_second: Bytes of their values, millions.
        cpu_seconds_per_million: CPU seconds of its processes for a million records.
        peak_rss_mb: Memory of its processes at the worst moment, MiB.
        loses: What it did not keep.
        times_careless: Its rate against that of the careless job, run by run.
        runs: All of them, in order.
    """

    name: str
    records_per_second: float
    mb_per_second: float
    cpu_seconds_per_million: float
    peak_rss_mb: float
    loses: str
    times_careless: float | None
    runs: list[Run]


class Load(Kept):
    """What was sent.

    Attributes:
        records: All of them.
        value_bytes: Mean bytes of a framed value.
        fields: Of the newer schema.
        partitions: Of the topic.
        bad: Records that no table can hold, of known kinds.
        tombstones: Records without a value.
    """

    records: int
    value_bytes: float
    fields: int
    partitions: int
    bad: int
    tombstones: int


class Case(Kept):
    """One measurement of a series, such as a number of partitions.

    Attributes:
        series: Which.
        name: Its place in it.
        load: What was sent.
        run: What it took.
    """

    series: str
    name: str
    load: Load
    run: Run

    @property
    def records_per_second(self) -> float:
        """Records in a second."""
        return self.run.records / self.run.seconds

    @property
    def mb_per_second(self) -> float:
        """Bytes of values, millions, in a second."""
        return self.records_per_second * self.load.value_bytes / 1e6

    @property
    def cpu_seconds_per_million(self) -> float:
        """CPU seconds for a million records."""
        return self.run.cpu_seconds / self.run.records * 1e6


class Latency(Kept):
    """End-to-end latency: from producing a record until a reader sees it.

    Attributes:
        every: What `spark-ingest run --every` was told.
        records: Records counted.
        p50, p95, p99: Seconds; the share of records that were visible by then.
        snapshots: Commits that brought them.
        cores: CPU seconds a second.
    """

    every: str
    records: int
    p50: float
    p95: float
    p99: float
    snapshots: int
    cores: float


class Quiet(Kept):
    """Streams on which little or nothing happens, in one process.

    Attributes:
        streams: How many.
        every: What `spark-ingest run --every` was told.
        records_per_second: On each of them.
        cpu_seconds_per_minute: Of the process and its JVM.
        rss_mb: Memory at the worst moment, MiB.
        behind: Records not yet visible at the end, of all streams; 0 when it keeps up.
    """

    streams: int
    every: str
    records_per_second: float
    cpu_seconds_per_minute: float
    rss_mb: float
    behind: int


class Contest(Kept):
    """All contestants on one topic, taking turns."""

    about: About
    load: Load
    rows: list[Row]


class Scaling(Kept):
    """Our engine on other topics, records and executors."""

    about: About
    cases: list[Case]


class Latencies(Kept):
    """End-to-end latency at a steady rate.

    Attributes:
        about: When, where, how.
        records_per_second: Produced.
        rows: By what `--every` was told.
    """

    about: About
    records_per_second: int
    rows: list[Latency]


class QuietStreams(Kept):
    """What streams cost on which little happens."""

    about: About
    rows: list[Quiet]


class Results(Kept):
    """What was measured of ingest; a part is None until it was."""

    contest: Contest | None = None
    scaling: Scaling | None = None
    latency: Latencies | None = None
    quiet: QuietStreams | None = None


def load_of(sent: Sent, fields: int, partitions: int) -> Load:
    """What was sent, for the file."""
    return Load(
        records=sent.records,
        value_bytes=round(sent.value_bytes / sent.records, 1),
        fields=fields,
        partitions=partitions,
        bad=sent.bad,
        tombstones=sent.kinds["tombstone"],
    )


def summary(runs: dict[str, list[Run]], load: Load) -> list[Row]:
    """A row for each contestant: medians, and its rate against the careless job's.

    Runs of one round are compared with each other, so that a machine that was slow for a
    while says nothing.
    """
    careless = runs.get(CARELESS)
    rows = []
    for name, its in runs.items():
        rate = median(run.records / run.seconds for run in its)
        times = None
        if careless is not None:
            times = median(
                (mine.records / mine.seconds) / (theirs.records / theirs.seconds)
                for mine, theirs in zip(its, careless, strict=True)
            )
        rows.append(
            Row(
                name=name,
                records_per_second=round(rate),
                mb_per_second=round(rate * load.value_bytes / 1e6, 1),
                cpu_seconds_per_million=round(
                    median(run.cpu_seconds / run.records for run in its) * 1e6, 2
                ),
                peak_rss_mb=round(max(run.peak_rss_mb for run in its)),
                loses=its[-1].loses,
                times_careless=None if times is None else round(times, 2),
                runs=its,
            )
        )
    return rows


def percentile(ordered: list[float], share: float) -> float:
    """The least of some values, in order, that this share of them does not exceed."""
    index = max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)
    return ordered[min(index, len(ordered) - 1)]


def read_results(file: Path) -> Results:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Results, "make bench")
