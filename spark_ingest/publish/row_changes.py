"""Which rows of a mart changed between two snapshots, as the bytes that are sent."""

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
    """A row that changed.

    Attributes:
        key: Avro binary of its key's columns.
        row: Avro binary of the row; of one that is gone, of its last values.
        op: ``c``, ``u`` or ``d``.
        problem: Why the row cannot be published, with its values; None of all others.
    """

    key: bytes
    row: bytes
    op: str
    problem: str | None = None


def snapshot_rows(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    """A table, ``schema.name``, as it was at a snapshot, with the columns that it had then."""
    return spark.read.option("versionAsOf", snapshot).table(f"{CATALOG}.{table}")


class Mart:
    """A mart's table at its snapshots, with the columns that its Avro schemas have."""

    def __init__(self, spark: SparkSession, table: str, schemas: RecordSchemas) -> None:
        self._spark = spark
        self._table = table
        self._schemas = schemas
        self._names = [field["name"] for field in schemas.row["fields"]]
        self._key = [field["name"] for field in schemas.key["fields"]]

    def rows(self, snapshot: int) -> Iterator[Change]:
        """Every row of a snapshot, as one that is new."""
        rows = self._at(snapshot)
        there = _once(rows, self._key)
        return _changes(self._encoded(there, F.lit("c"), "row"))

    def changes(self, old: int, new: int) -> Iterator[Change]:
        """What changed from one snapshot to another: one change for each key.

        Only days, or values of the partition's column, are read whose files differ: rewritten
        rows that are alike are found by comparing them.
        """
        days = self._changed_partitions(old, new)
        before, after = (self._at(snapshot) for snapshot in (old, new))
        if days is not None:
            before, after = before.where(days), after.where(days)
        key = list(self._key)
        was = before.select(*key, F.struct(*self._names).alias("old_row"))
        joined = _once(after, self._key).join(was, key, "full_outer")
        op = F.when(F.col("row").isNull(), "d").when(F.col("old_row").isNull(), "c").otherwise("u")
        differ = ~F.col("row").eqNullSafe(F.col("old_row"))
        # A row whose key is there twice is no change of its first one.
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
            F.concat(F.lit("its key is there "), F.col("copies"), F.lit(" times, ")),
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
        """Where the rows lie whose files differ; None where that may be anywhere."""
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


def _once(rows: DataFrame, key: list[str]) -> DataFrame:
    """Each key once, with its row and how often it is there."""
    return rows.groupBy(*key).agg(
        F.first(F.struct(*rows.columns)).alias("row"), F.count("*").alias("copies")
    )


def _changes(encoded: DataFrame) -> Iterator[Change]:
    for key, row, op, problem in encoded.toLocalIterator(prefetchPartitions=True):
        yield Change(bytes(key or b""), bytes(row or b""), op, problem)
