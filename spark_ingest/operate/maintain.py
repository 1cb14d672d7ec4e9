"""Upkeep of the lake's tables: few files, few snapshots, small metadata, whatever is committed.

Each step is one of Iceberg's own procedures, a commit by itself or none, so that stopping
anywhere leaves a good table and the next round goes on. A running stream is not held up:
Iceberg puts a compaction behind commits that came meanwhile, and a stream that finds ``main``
moved by one puts its staged batch behind it (:meth:`spark_ingest.commits.lease.Lease.publish`).
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
from spark_ingest.operate import proof_marks, reconciliations

_Result = TypeVar("_Result")
OWN_TABLES = (
    quarantine_table.TABLE,
    commit_log.TABLE,
    proof_marks.TABLE,
    reconciliations.TABLE,
    alert_log.TABLE,
)
"""The tables of ingest itself, beside the streams'."""
# Iceberg refuses to look for orphans younger than this: a writer may be about to commit them.
YOUNGEST_ORPHANS = timedelta(days=1)
# Iceberg's own rules for what is worth rewriting.
_SMALL_SHARE = 0.75
_FEW_FILES = 5
_DELETED_SHARE = 0.3
# The id that Iceberg reserves for the column of a file of deletes.
_DELETED_FILE_PATH = 2147483546
_MANY_MANIFESTS = 20
# Iceberg's own target for a manifest.
_MANIFEST_BYTES = str(8 * 2**20)
_SIDE_BRANCH_AGE = timedelta(hours=1)
_ATTEMPTS = 5
_PAUSE_SECONDS = 1.0
_METADATA_PROPERTIES = {
    key: value for key, value in bronze.PROPERTIES.items() if key.startswith("write.metadata.")
}


@dataclass(frozen=True)
class Policy:
    """What maintenance aims at.

    Attributes:
        keep: Snapshots younger than this stay: as long as a reader may take for one query.
        target_bytes: Size of a compacted file.
        orphans: Files that no snapshot names are removed when older; None looks for none.
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
    """What a table takes.

    Attributes:
        files: Data files that its current snapshot reads.
        small_files: Those under three quarters of the target size.
        bytes: Of its data files.
        snapshots: That its metadata names.
        manifests: Of its current snapshot.
        metadata_bytes: All that lies in its metadata folder; None where Hadoop's file systems
            do not know the store.
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
        before: What it took.
        after: What it takes now; the same in a dry run.
        steps: What was done or, in a dry run, would be.
    """

    table: str
    before: Usage
    after: Usage
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as the table's metadata names it.

    Attributes:
        parent: The one before it, if that still is there or not.
        at: When it was committed.
        commit_id: The own commit that it carries.
    """

    parent: int | None
    at: datetime
    commit_id: int | None


@dataclass(frozen=True)
class History:
    """A table's snapshots and the references that keep them.

    Attributes:
        snapshots: By id.
        branches: Head by branch name.
        tags: Snapshot by tag name.
    """

    snapshots: Mapping[int, Snapshot]
    branches: Mapping[str, int]
    tags: Mapping[str, int] = field(default_factory=dict)

    def ancestors(self, head: int) -> list[int]:
        """A snapshot and those before it that are still there, newest first."""
        found: list[int] = []
        here: int | None = head
        while here is not None and here in self.snapshots:
            found.append(here)
            here = self.snapshots[here].parent
        return found

    def needed(self, logged: Collection[int]) -> int:
        """How many of ``main``'s newest snapshots must stay, whatever their age.

        Down to the newest own commit, where the stream's next start reads its offsets, and
        down to the oldest one that the commit log lacks: its row is made from the snapshot.
        ``logged`` has the commit ids of the table that the log has.
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
        """The snapshots that Iceberg removes: old, and not among a branch's newest.

        Those younger than ``before`` stay, and the ``least`` newest of each branch.
        """
        kept = set(self.tags.values())
        for head in self.branches.values():
            for depth, number in enumerate(self.ancestors(head)):
                if depth >= least and self.snapshots[number].at < before:
                    break
                kept.add(number)
        return [n for n, s in self.snapshots.items() if n not in kept and s.at < before]


def lake_tables(spark: SparkSession) -> list[str]:
    """Every table of the lake, ``schema.name``: those of dbt too."""
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
    """Bring one table into shape.

    ``table`` is ``schema.name`` and exists; ``dry_run`` only says what would be done;
    ``is_stopping`` is asked before each step: the others are then left to the next round.

    Raises:
        MillraceError: Iceberg refused a step each time it was tried.
    """
    upkeep = _Upkeep(spark, table, policy, dry_run)
    before = upkeep.usage()
    for step in (
        upkeep.keep_metadata_short,
        upkeep.remove_side_branches,
        upkeep.compact,
        upkeep.rewrite_manifests,
        upkeep.expire,
        upkeep.remove_orphans,
    ):
        if not is_stopping():
            step()
    after = before if dry_run else upkeep.usage()
    return Maintained(table, before, after, tuple(upkeep.steps))


class _Upkeep:
    """The steps on one table; :func:`maintain` gives their order."""

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

    def keep_metadata_short(self) -> None:
        """Let each commit remove the oldest metadata.json; tables of dbt keep all otherwise."""
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
        """Remove branches of commits that were killed before they were published."""
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
            # What is done stays done when a later group fails or is stopped.
            "partial-progress.enabled": "true",
        }
        listed = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        kinds = ((small, "small files"), (outdated, "files with many deleted rows"))
        what = " and ".join(f"{count} {kind}" for count, kind in kinds if count)
        self._do(
            f"compact {what}", lambda: self._call("rewrite_data_files", f"options => map({listed})")
        )

    def _small_files(self) -> int:
        """Of partitions that have enough of them to compact."""
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
        """Data files of which many rows are deleted by files beside them."""
        files = self._meta("files")
        data = files.where("content = 0").select("file_path", "record_count")
        # Version 2 of the format names the one data file by its bounds (spec, "Position delete
        # files"), version 3 by a field.
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
        found = self._attempt(
            lambda: self._call(
                "remove_orphan_files",
                f"older_than => timestamp '{before:%Y-%m-%d %H:%M:%S} UTC'",
                f"dry_run => {str(self._dry_run).lower()}",
            )
        )
        if found:
            self.steps.append(f"remove {len(found)} orphan files")

    def _history(self) -> History:
        own = F.col("summary").getItem(COMMIT_ID).cast("bigint")
        # As epoch seconds: a Python datetime of Spark's is in the process's own zone.
        at = F.col("committed_at").cast("double")
        snapshots = {
            row[0]: Snapshot(row[1], datetime.fromtimestamp(row[2], UTC), row[3])
            for row in self._meta("snapshots").select("snapshot_id", "parent_id", at, own).collect()
        }
        refs = self._meta("refs").select("name", "type", "snapshot_id").collect()
        # A reference that came between the two questions has a snapshot not known here.
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
        """Try again where a commit of somebody else came between."""
        attempt = 1
        while True:
            try:
                return change()
            except JAVA_ERRORS as error:
                if attempt == _ATTEMPTS:
                    raise MillraceError(
                        f"{self._table} could not be maintained: {java_reason(error)}: "
                        "run maintain again when less is written to it"
                    ) from error
            attempt += 1
            time.sleep(_PAUSE_SECONDS)
