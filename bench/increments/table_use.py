"""What queries do to tables, as Iceberg and Spark count it themselves.

Iceberg hands Spark what planning a scan found (the SQL metrics that Spark's pages would
show), and logs a report of each commit (``LoggingMetricsReporter``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_COMMIT = re.compile(r"CommitReport\{tableName=(?:lake\.)?([^,]+),")
_COUNTER = re.compile(r"(\w+)=CounterResult\{unit=\w+, value=(\d+)\}")
# What replaces rows by copying files, by files of deletes, by a condition; what only adds.
_WRITES = ("ReplaceData", "WriteDelta", "Overwrite", "AppendData", "AtomicReplace")
_SCAN = re.compile(r"BatchScan (?:lake\.)?(\S+)")


@dataclass
class TableUse:
    """What was done to one table.

    Attributes:
        files_read: Data files that scans opened; one that two scans opened counts twice.
        bytes_read: Size of these files; of a Parquet file only the wanted columns are read.
        rows_read: Rows that came out of them.
        files_written: Data files that commits added.
        bytes_written: Their size, and that of files of deletes.
        delete_files_written: Files that commits added which say what rows of others are gone.
    """

    files_read: int = 0
    bytes_read: int = 0
    rows_read: int = 0
    files_written: int = 0
    bytes_written: int = 0
    delete_files_written: int = 0


@dataclass(frozen=True)
class Scan:
    """One table in one query.

    Attributes:
        table: ``schema.name``.
        counts: Spark's SQL metrics of it, by the last part of their type or their name.
    """

    table: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Query:
    """One query, as Spark keeps it.

    Attributes:
        seconds: From its beginning to its end.
        scans: The tables that it read.
        writes: Whether it wrote to a table.
    """

    seconds: float
    scans: tuple[Scan, ...]
    writes: bool


def log_settings(reports: Path, errors: Path) -> str:
    """Lines for Spark's ``log4j2.properties``: commit reports, and all else, to files."""
    return f"""
appender.reports.type = File
appender.reports.name = reports
appender.reports.fileName = {reports}
appender.reports.layout.type = PatternLayout
appender.reports.layout.pattern = %m%n
logger.reports.name = org.apache.iceberg.metrics.LoggingMetricsReporter
logger.reports.level = info
logger.reports.additivity = false
logger.reports.appenderRef.reports.ref = reports
appender.errors.type = File
appender.errors.name = errors
appender.errors.fileName = {errors}
appender.errors.layout.type = PatternLayout
appender.errors.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
rootLogger.appenderRef.stderr.ref = errors
"""


def use_by_table(scans: Iterable[Scan], commit_log: Iterable[str]) -> dict[str, TableUse]:
    """Sum scans and commit reports by table."""
    uses: dict[str, TableUse] = {}
    for scan in scans:
        use = uses.setdefault(scan.table, TableUse())
        use.files_read += scan.counts.get("ResultDataFiles", 0)
        use.bytes_read += scan.counts.get("TotalDataFileSize", 0)
        use.rows_read += scan.counts.get("number of output rows", 0)
    for line in commit_log:
        found = _COMMIT.search(line)
        if found is not None:
            use = uses.setdefault(found[1], TableUse())
            counts = {name: int(value) for name, value in _COUNTER.findall(line)}
            use.files_written += counts.get("addedDataFiles", 0)
            use.bytes_written += counts.get("addedFilesSizeInBytes", 0)
            use.delete_files_written += counts.get("addedDeleteFiles", 0)
    return dict(sorted(uses.items()))


class Queries:
    """The queries of a Spark session, and what they read.

    Spark keeps this for its pages, whether it shows them or not.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self._store: Any = spark._jsparkSession.sharedState().statusStore()

    def last(self) -> int:
        """The number of the newest query; -1 when there was none."""
        return max((query.executionId() for query in self._queries()), default=-1)

    def scans_after(self, number: int) -> list[Scan]:
        """All scans of the queries after one."""
        return [
            scan
            for query in self._queries()
            if query.executionId() > number
            for scan in self._scans(query.executionId())
        ]

    def queries_after(self, number: int) -> list[Query]:
        """All queries after one that have ended."""
        return [
            Query(
                seconds=(query.completionTime().get().getTime() - query.submissionTime()) / 1000,
                scans=tuple(self._scans(query.executionId())),
                writes=any(
                    node.name().startswith(_WRITES)
                    for node in _each(self._store.planGraph(query.executionId()).allNodes())
                ),
            )
            for query in self._queries()
            if query.executionId() > number and query.completionTime().isDefined()
        ]

    def _queries(self) -> list[Any]:
        self._wait()
        return list(_each(self._store.executionsList()))

    def _scans(self, number: int) -> Iterator[Scan]:
        values = self._store.executionMetrics(number)
        for node in _each(self._store.planGraph(number).allNodes()):
            found = _SCAN.match(node.name())
            if found is not None:
                counts = {}
                for metric in _each(node.metrics()):
                    value = values.get(metric.accumulatorId())
                    if value.isDefined():
                        counts.update(_count(metric, value.get()))
                yield Scan(found[1], counts)

    def _wait(self) -> None:
        """What was counted arrives a moment later."""
        self._context.listenerBus().waitUntilEmpty()


def bytes_read(spark: SparkSession) -> int | None:
    """Bytes that the session's JVM has read so far: data, metadata, shuffled rows.

    None where the system keeps no account of it.
    """
    jvm: Any = spark._jvm
    account = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/io")
    if not account.exists():
        return None
    found = re.search(r"^rchar: (\d+)$", account.read_text(), re.MULTILINE)
    return int(found[1]) if found else None


def _count(metric: Any, value: str) -> dict[str, int]:
    """A metric that is a whole number, by the name of its class where it has one."""
    digits = value.replace(",", "")
    if not digits.isdigit():
        return {}
    kind = metric.metricType()
    return {kind.rpartition(".")[2] if "." in kind else metric.name(): int(digits)}


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(at) for at in range(sequence.size()))
