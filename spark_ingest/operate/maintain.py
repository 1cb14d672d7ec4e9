"""Table maintenance: compact files, expire snapshots, remove orphan files, trim metadata.

Each step is an Iceberg procedure with at most one commit, so that it can be stopped at any time
and the next run continues. Running streams are not blocked: Iceberg rebases a compaction onto
concurrent commits, and a stream rebases its staged batch onto a compaction
(:meth:`spark_ingest.commits.lease.Lease.publish`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark_ingest.alerts import alert_log
from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.branch import created_at, remove_branch
from spark_ingest.commits.committed import COMMIT_ID
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm, java_reason
from spark_ingest.lake.table_change import is_rewrite_conflict
from spark_ingest.operate import checkpoints, reconciliations

_Result = TypeVar("_Result")
OWN_TABLES = (
    quarantine_table.TABLE,
    commit_log.TABLE,
    checkpoints.TABLE,
    reconciliations.TABLE,
    alert_log.TABLE,
)
"""The tables of ingest itself, besides those of the streams."""
# Iceberg rejects shorter intervals for orphans: a writer may be about to commit the files.
YOUNGEST_ORPHANS = timedelta(days=1)
# Iceberg's defaults for files to rewrite.
_SMALL_SHARE = 0.75
_FEW_FILES = 5
_DELETED_SHARE = 0.3
# Iceberg's reserved field id of file_path in position delete files.
_DELETED_FILE_PATH = 2147483546
_MANY_MANIFESTS = 20
# Iceberg's default target size of a manifest.
_MANIFEST_BYTES = str(8 * 2**20)
_SIDE_BRANCH_AGE = timedelta(hours=1)
_ATTEMPTS = 5
_PAUSE_SECONDS = 1.0
_METADATA_PROPERTIES = {
    key: value for key, value in bronze.PROPERTIES.items() if key.startswith("write.metadata.")
}


@dataclass(frozen=True)
class Policy:
    """The options of maintenance.

    Attributes:
        keep: Minimum age of expired snapshots: at least the duration of the longest query.
        target_bytes: Target size of a compacted file.
        orphans: Minimum age of removed orphan files; None to skip them.
    """

    keep: timedelta
    target_bytes: int
    orphans: timedelta | None

    def __post_init__(self) -> None:
        if self.orphans is not None and self.orphans < YOUNGEST_ORPHANS:
            raise ConfigurationError(
                f"--orphans {self.orphans}: files younger than a day may be about to be "
                "committed; give 1d or more"
            )


@dataclass(frozen=True)
class Usage:
    """Files and sizes of a table.

    Attributes:
        files: Data files of the current snapshot.
        small_files: Data files under three quarters of the target size.
        bytes: Size of the data files.
        snapshots: Snapshots in the table metadata.
        manifests: Manifests of the current snapshot.
        metadata_bytes: Size of the metadata folder; None if Hadoop has no file system for the
            store.
    """

    files: int
    small_files: int
    bytes: int
    snapshots: int
    manifests: int
    metadata_bytes: int | None


@dataclass(frozen=True)
class Maintained:
    """One table's maintenance.

    Attributes:
        table: ``schema.name``.
        before: Usage before.
        after: Usage after; the same in a dry run.
        steps: The executed steps or, in a dry run, the planned ones.
    """

    table: str
    before: Usage
    after: Usage
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of the table metadata.

    Attributes:
        parent: Id of the parent snapshot, which may have expired.
        at: Commit time.
        commit_id: Id of the ingest commit; None for snapshots of other writers.
    """

    parent: int | None
    at: datetime
    commit_id: int | None


@dataclass(frozen=True)
class History:
    """A table's snapshots and the references that retain them.

    Attributes:
        snapshots: By id.
        branches: Head by branch name.
        tags: Snapshot by tag name.
    """

    snapshots: Mapping[int, Snapshot]
    branches: Mapping[str, int]
    tags: Mapping[str, int] = field(default_factory=dict)

    def ancestors(self, head: int) -> list[int]:
        """A snapshot and its existing ancestors, newest first."""
        found: list[int] = []
        here: int | None = head
        while here is not None and here in self.snapshots:
            found.append(here)
            here = self.snapshots[here].parent
        return found

    def needed(self, logged: Collection[int]) -> int:
        """How many of ``main``'s newest snapshots must be retained, regardless of their age.

        Down to the newest ingest commit, from which the stream resumes, and down to the oldest
        one that is not in the commit log: its row is written from the snapshot. ``logged`` has
        the commit ids of the table in the commit log.
        """
        count, seen_own = 1, False
        main = self.ancestors(self.branches["main"]) if "main" in self.branches else []
        for depth, number in enumerate(main, start=1):
            commit_id = self.snapshots[number].commit_id
            if commit_id is None:
                continue
            if not seen_own or commit_id not in logged:
                count = depth
            seen_own = True
        return count

    def expired(self, before: datetime, least: int) -> list[int]:
        """The snapshots that Iceberg expires.

        Those younger than ``before`` are retained, and the ``least`` newest of each branch.
        """
        retained = set(self.tags.values())
        for head in self.branches.values():
            for depth, number in enumerate(self.ancestors(head)):
                if depth >= least and self.snapshots[number].at < before:
                    break
                retained.add(number)
        return [n for n, s in self.snapshots.items() if n not in retained and s.at < before]


def lake_tables(spark: SparkSession) -> list[str]:
    """All tables of the lake, including those of dbt, as ``schema.name``."""
    found = []
    for (schema,) in spark.sql(f"show namespaces in {CATALOG}").collect():
        shown = spark.sql(f"show tables in {CATALOG}.`{schema}`").collect()
        found += [f"{schema}.{row['tableName']}" for row in shown]
    return sorted(found)


def maintain(
    spark: SparkSession,
    table: str,
    policy: Policy,
    dry_run: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Maintained:
    """Maintain one table.

    ``table`` is ``schema.name`` and must exist; ``dry_run`` only plans the steps;
    ``is_stopping`` is checked before each step.

    Raises:
        MillraceError: A step failed, or concurrent commits prevented it at each attempt.
    """
    work = _Maintenance(spark, table, policy, dry_run)
    before = work.usage()
    for step in (
        work.limit_metadata_files,
        work.remove_side_branches,
        work.compact,
        work.rewrite_manifests,
        work.expire,
        work.remove_orphans,
    ):
        if not is_stopping():
            step()
    after = before if dry_run else work.usage()
    return Maintained(table, before, after, tuple(work.steps))


class _Maintenance:
    """The steps on one table; :func:`maintain` runs them in order."""

    def __init__(self, spark: SparkSession, table: str, policy: Policy, dry_run: bool) -> None:
        self.steps: list[str] = []
        self._spark = spark
        self._jvm = Jvm(spark)
        self._table = table
        self._policy = policy
        self._dry_run = dry_run

    def usage(self) -> Usage:
        small = self._policy.target_bytes * _SMALL_SHARE
        files = self._meta("files").where("content = 0")
        (row,) = files.agg(
            F.count(F.lit(1)),
            F.count_if(F.col("file_size_in_bytes") < small),
            F.coalesce(F.sum("file_size_in_bytes"), F.lit(0)),
        ).collect()
        return Usage(
            files=row[0],
            small_files=row[1],
            bytes=row[2],
            snapshots=self._meta("snapshots").count(),
            manifests=self._meta("manifests").count(),
            metadata_bytes=self._jvm.metadata_bytes(self._table),
        )

    def limit_metadata_files(self) -> None:
        """Set the table properties by which each commit deletes old metadata.json files."""
        have = self._jvm.iceberg_table(self._table).properties()
        missing = [key for key in _METADATA_PROPERTIES if have.get(key) is None]
        if not missing:
            return

        def change() -> None:
            update = self._jvm.iceberg_table(self._table).updateProperties()
            for key in missing:
                update = update.set(key, _METADATA_PROPERTIES[key])
            update.commit()

        self._do("keep the newest metadata files only", change)

    def remove_side_branches(self) -> None:
        """Remove branches of writers that were killed before they published."""
        oldest = datetime.now(UTC) - _SIDE_BRANCH_AGE
        history = self._history()
        for branch in sorted(history.branches):
            made = created_at(branch)
            if made is not None and made < oldest:
                self._do(
                    f"remove the abandoned branch {branch}",
                    partial(remove_branch, self._jvm, self._table, branch),
                )

    def compact(self) -> None:
        small, outdated = self._small_files(), self._files_with_deletes()
        if not small and not outdated:
            return
        options = {
            "target-file-size-bytes": self._policy.target_bytes,
            "min-input-files": _FEW_FILES,
            "delete-ratio-threshold": _DELETED_SHARE,
            "remove-dangling-deletes": "true",
            # Commit finished file groups even if a later one fails.
            "partial-progress.enabled": "true",
        }
        listed = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        kinds = ((small, "small files"), (outdated, "files with many deleted rows"))
        what = " and ".join(f"{count} {kind}" for count, kind in kinds if count)
        self._do(
            f"compact {what}", lambda: self._call("rewrite_data_files", f"options => map({listed})")
        )

    def _small_files(self) -> int:
        """The small files in partitions with enough of them to compact."""
        small = self._policy.target_bytes * _SMALL_SHARE
        files = self._meta("files").where("content = 0")
        by = [name for name in ("spec_id", "partition") if name in files.columns]
        (row,) = (
            files.where(F.col("file_size_in_bytes") < small)
            .groupBy(*by)
            .agg(F.count(F.lit(1)).alias("n"))
            .where(f"n >= {_FEW_FILES}")
            .agg(F.coalesce(F.sum("n"), F.lit(0)))
            .collect()
        )
        return int(row[0])

    def _files_with_deletes(self) -> int:
        """The data files with many rows deleted by delete files."""
        files = self._meta("files")
        data = files.where("content = 0").select("file_path", "record_count")
        # Format version 2 has the data file in the bounds (spec, "Position delete files"),
        # version 3 in a field.
        first, last = (F.col(f"{end}_bounds")[_DELETED_FILE_PATH] for end in ("lower", "upper"))
        path = F.coalesce("referenced_data_file", F.when(first == last, first))
        deletes = (
            files.where("content = 1")
            .groupBy(path.cast("string").alias("file_path"))
            .agg(F.sum("record_count").alias("deleted"))
        )
        return (
            data.join(deletes, "file_path")
            .where(F.col("deleted") >= F.col("record_count") * _DELETED_SHARE)
            .count()
        )

    def rewrite_manifests(self) -> None:
        manifests = self._meta("manifests")
        (row,) = manifests.agg(F.count(F.lit(1)), F.coalesce(F.sum("length"), F.lit(0))).collect()
        properties = self._jvm.iceberg_table(self._table).properties()
        full = int(properties.getOrDefault(bronze.MANIFEST_BYTES, _MANIFEST_BYTES))
        if row[0] >= _MANY_MANIFESTS + row[1] // full:
            self._do(f"rewrite {row[0]} manifests", lambda: self._call("rewrite_manifests"))

    def expire(self) -> None:
        before = datetime.now(UTC) - self._policy.keep
        history = self._history()
        least = history.needed(set(commit_log.commit_ids(self._spark, self._table)))
        count = len(history.expired(before, least))
        if count:
            moment = f"{before:%Y-%m-%d %H:%M:%S.%f}"
            self._do(
                f"expire {count} snapshots",
                lambda: self._call(
                    "expire_snapshots",
                    f"older_than => timestamp '{moment} UTC'",
                    f"retain_last => {least}",
                ),
            )

    def remove_orphans(self) -> None:
        if self._policy.orphans is None:
            return
        before = datetime.now(UTC) - self._policy.orphans
        # Iceberg lists files by Hadoop, which has no file system for most object stores.
        by_file_io = not self._jvm.has_hadoop_files(self._jvm.iceberg_table(self._table).location())
        found = self._attempt(
            lambda: self._call(
                "remove_orphan_files",
                f"older_than => timestamp '{before:%Y-%m-%d %H:%M:%S} UTC'",
                f"dry_run => {str(self._dry_run).lower()}",
                f"prefix_listing => {str(by_file_io).lower()}",
            )
        )
        if found:
            self.steps.append(f"remove {len(found)} orphan files")

    def _history(self) -> History:
        own = F.col("summary").getItem(COMMIT_ID).cast("bigint")
        # As epoch seconds: PySpark returns naive datetimes in the local time zone.
        at = F.col("committed_at").cast("double")
        snapshots = {
            row[0]: Snapshot(row[1], datetime.fromtimestamp(row[2], UTC), row[3])
            for row in self._meta("snapshots").select("snapshot_id", "parent_id", at, own).collect()
        }
        refs = self._meta("refs").select("name", "type", "snapshot_id").collect()
        # A reference created between the two reads may have an unknown snapshot.
        known = [row for row in refs if row[2] in snapshots]
        return History(
            snapshots,
            branches={row[0]: row[2] for row in known if row[1] == "BRANCH"},
            tags={row[0]: row[2] for row in known if row[1] == "TAG"},
        )

    def _meta(self, name: str) -> DataFrame:
        return self._spark.table(f"{CATALOG}.{self._table}.{name}")

    def _call(self, procedure: str, *arguments: str) -> Sequence[Row]:
        given = ", ".join([f"table => '{self._table}'", *arguments])
        return self._spark.sql(f"call {CATALOG}.system.{procedure}({given})").collect()

    def _do(self, step: str, change: Callable[[], object]) -> None:
        if not self._dry_run:
            self._attempt(change)
        self.steps.append(step)

    def _attempt(self, change: Callable[[], _Result]) -> _Result:
        """Retry after conflicts with concurrent commits."""
        attempt = 1
        while True:
            try:
                return change()
            except JAVA_ERRORS as error:
                failed = f"{self._table} could not be maintained: {java_reason(error)}"
                if not is_rewrite_conflict(error):
                    raise MillraceError(failed) from error
                if attempt == _ATTEMPTS:
                    failed += ": run `spark-ingest maintain` again while fewer writers are active"
                    raise MillraceError(failed) from error
            attempt += 1
            time.sleep(_PAUSE_SECONDS)
