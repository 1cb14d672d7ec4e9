"""The rows of a mart that changed between two snapshots, encoded as Avro."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.publish.record_schemas import RecordSchemas

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """A changed row.

    Attributes:
        key: Avro binary of the key columns.
        row: Avro binary of the row; of a deleted one, its last values.
        op: ``c``, ``u`` or ``d``.
        problem: Why the row cannot be published, with its values; otherwise None.
    """

    key: bytes
    row: bytes
    op: str
    problem: str | None = None


def snapshot_rows(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    """The rows of a table, ``schema.name``, at a snapshot, with its columns at that time."""
    return spark.read.option("versionAsOf", snapshot).table(f"{CATALOG}.{table}")


class Mart:
    """A mart's table at its snapshots, with the columns of its Avro schemas."""

    def __init__(self, spark: SparkSession, table: str, schemas: RecordSchemas) -> None:
        self._spark = spark
        self._table = table
        self._schemas = schemas
        self._names = [field["name"] for field in schemas.row["fields"]]
        self._key = [field["name"] for field in schemas.key["fields"]]

    def rows(self, snapshot: int) -> Iterator[Change]:
        """All rows of a snapshot as inserts."""
        rows = _by_key(self._at(snapshot), self._key)
        return _changes(self._encoded(rows, F.lit("c"), "row"))

    def changes(self, old: int, new: int) -> Iterator[Change]:
        """The net changes between two snapshots, one for each key.

        Reads only partitions whose files differ; rewritten rows without a change are found by
        comparison.
        """
        days = self._changed_partitions(old, new)
        before, after = (self._at(snapshot) for snapshot in (old, new))
        if days is not None:
            before, after = before.where(days), after.where(days)
        key = list(self._key)
        was = before.select(*key, F.struct(*self._names).alias("old_row"))
        joined = _by_key(after, self._key).join(was, key, "full_outer")
        op = F.when(F.col("row").isNull(), "d").when(F.col("old_row").isNull(), "c").otherwise("u")
        differ = ~F.col("row").eqNullSafe(F.col("old_row"))
        # Also report duplicate keys without a change.
        changed = joined.where(differ | (F.col("copies") > 1))
        return _changes(self._encoded(changed, op, "coalesce(row, old_row)"))

    def _at(self, snapshot: int) -> DataFrame:
        return snapshot_rows(self._spark, self._table, snapshot).select(*self._names)

    def _encoded(self, rows: DataFrame, op: Column, row: str) -> DataFrame:
        required = [
            field["name"]
            for field in self._schemas.row["fields"]
            if not isinstance(field["type"], list)
        ]
        rows = rows.withColumn("sent", F.expr(row))
        missing = [
            F.when(F.col(f"sent.{name}").isNull(), F.lit(f"{name} is null, ")) for name in required
        ]
        twice = F.when(
            F.col("copies") > 1,
            F.concat(F.lit("its key is in "), F.col("copies"), F.lit(" rows, ")),
        )
        problem = F.nullif(F.concat_ws("", twice, *missing), F.lit(""))
        key = F.struct(*(F.col(f"sent.{name}") for name in self._key))
        good = problem.isNull()
        text = F.concat(problem, F.lit("in the row "), F.to_json("sent"))
        encoded = {
            "key": to_avro(key, json.dumps(self._schemas.key)),
            "row": to_avro("sent", json.dumps(self._schemas.row)),
        }
        return rows.select(
            *(F.when(good, column).alias(name) for name, column in encoded.items()),
            op.alias("op"),
            F.when(~good, text).alias("problem"),
        )

    def _changed_partitions(self, old: int, new: int) -> Column | None:
        """A predicate for the partitions whose files differ; None if it cannot be derived."""
        iceberg = Jvm(self._spark).iceberg_table(self._table)
        fields = list(iceberg.spec().fields())
        if len(fields) != 1:
            return None
        transform = str(fields[0].transform())
        column = iceberg.schema().findColumnName(fields[0].sourceId())
        if transform not in ("day", "identity") or column not in self._names:
            return None
        table = f"{self._table}.files"
        files = [
            snapshot_rows(self._spark, table, snapshot).select(
                "file_path", "spec_id", f"partition.{fields[0].name()}"
            )
            for snapshot in (old, new)
        ]
        differ = files[0].exceptAll(files[1]).union(files[1].exceptAll(files[0]))
        values: set[Any] = set()
        for _, spec, value in differ.collect():
            if spec != iceberg.spec().specId():
                return None
            values.add(value)
        found = F.lit(False)
        for value in values:
            found = found | _is_in(F.col(column), transform, value)
        return found


def _is_in(column: Column, transform: str, value: Any) -> Column:
    if value is None:
        return column.isNull()
    if transform == "identity":
        return column == F.lit(value)
    begin, end = (F.lit(str(day)).cast("timestamp") for day in (value, value + _DAY))
    return (column >= begin) & (column < end)


def _by_key(rows: DataFrame, key: list[str]) -> DataFrame:
    """One row for each key, with the number of rows that have it."""
    return rows.groupBy(*key).agg(
        F.first(F.struct(*rows.columns)).alias("row"), F.count("*").alias("copies")
    )


def _changes(encoded: DataFrame) -> Iterator[Change]:
    for key, row, op, problem in encoded.toLocalIterator(prefetchPartitions=True):
        yield Change(bytes(key or b""), bytes(row or b""), op, problem)
