"""Data files of frames beside those that Iceberg's own writer makes of the same records.

Fails when a reader gets other rows, or a planner other bounds, counts or places to split.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.framing import header
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.commits.committed import Commit
from spark_ingest.data_files import parquet
from spark_ingest.data_files.parquet import ipc_stream
from spark_ingest.data_files.stage import append_rows, layout, write_frame, write_frames
from spark_ingest.errors import ColumnsChanged, FilesNotWritten
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.records.bronze_rows import table_rows
from spark_ingest.records.frames import frame_maker
from spark_ingest.records.validation import validator
from tests.python.spark.arrow_frames import kafka_rows, kafka_rows_here

ROWS = 5_000
# Of a row's number `id`: Spark's SQL for a column's value.
TYPES = {
    "boolean": "id % 3 = 0",
    "int": "cast(id as int)",
    "bigint": "id * 10000000000",
    "float": "case id % 5 when 0 then float('NaN') when 1 then null else cast(id as float) end",
    "double": "case id % 5 when 0 then double('NaN') when 1 then null else -id / 3d end",
    "decimal(9,2)": "cast((id - 50) / 7 as decimal(9,2))",
    "decimal(18,0)": "cast(id * 1000000000000 as decimal(18,0))",
    "decimal(38,10)": "cast(-id * 1234567890123456789012345.6789012345 as decimal(38,10))",
    "date": "date_add(date'1960-01-01', int(id * 7))",
    "timestamp": "timestamp_micros(id * 1000003 - 7000000000)",
    "timestamp_ntz": "timestamp_ntz'1969-12-31 23:59:59.999999' + make_dt_interval(0, 0, 0, id)",
    "string": "repeat(concat('é-', id), 1 + int(id % 10))",
    "binary": "unhex(lpad(hex(id), 8, 'F'))",
    "struct<a:int,b:struct<c:bigint,d:string>>": (
        "case when id % 4 > 0 then named_struct('a', int(id), 'b', case when id % 4 > 1 then "
        "named_struct('c', id, 'd', string(id)) end) end"
    ),
    "array<double>": "case when id % 4 > 0 then array_repeat(double('NaN'), int(id % 4 - 1)) end",
    "array<struct<key:string,value:binary>>": (
        "transform(sequence(1, int(id % 3)), i -> named_struct('key', string(i), 'value', "
        "case when i > 1 then binary(string(id)) end))"
    ),
    "map<string,decimal(12,3)>": (
        "case when id % 4 > 0 then map('a', cast(id as decimal(12,3)), string(id), null) end"
    ),
    "map<string,array<map<string,timestamp>>>": (
        "map(string(id), array(map('now', timestamp_micros(id)), null))"
    ),
}
PARTITIONS = (
    "",
    "days(at)",
    "years(at), bucket(4, name)",
    "hours(at), truncate(1, name), flag",
    "months(at), truncate(100, number), note.inner",
)
COLUMNS = {
    "at": "timestamp_micros(id * 30000000000 - 3600000000)",
    "name": "case when id % 50 > 0 then string(id % 3) end",
    "flag": "id % 2 = 0",
    "number": "cast(id % 250 as decimal(9,2))",
    "note": "named_struct('inner', date_add(date'1969-12-31', int(id % 3)))",
}
BEGAN = datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)
COMMIT = Commit(1, "topic", {0: 0}, {0: ROWS})
_NUMBERS = itertools.count(1)


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    spark.sql("create schema if not exists lake.bronze")
    return spark


def avro_records(
    spark: SparkSession, values: dict[str, str], rows: int
) -> tuple[DataFrame, TopicSchema]:
    """Records of some columns in Avro, as Spark's Kafka source gives them, and their schema."""
    made = spark.range(0, rows, 1, 1).select(
        F.struct(*(F.expr(f"{v} as {name}") for name, v in values.items())).alias("value"), "id"
    )
    kind = made.schema["value"].dataType.json()
    jvm = Jvm(spark)
    types = jvm.packages.org.apache.spark.sql.types.DataType.fromJson(kind)
    converters = jvm.packages.org.apache.spark.sql.avro.SchemaConverters
    schema = str(converters.toAvroType(types, False, "row", "").toString())
    records = made.select(
        F.expr("cast(null as binary) as key"),
        F.concat(F.lit(header(1)), to_avro("value", schema)).alias("value"),
        F.lit("t").alias("topic"),
        F.expr("0 as partition"),
        F.col("id").alias("offset"),
        F.expr("timestamp_micros(id * 1000) as timestamp"),
        F.expr(f"cast(null as {bronze.HEADERS.simpleString()}) as headers"),
    )
    return records, combine([WriterSchema(1, json.loads(schema))])


def each_way(
    spark: SparkSession, values: dict[str, str], partitioned: str = "", rows: int = ROWS
) -> list[tuple[DataFrame, DataFrame]]:
    """A table and Iceberg's metadata of its files, of the same records, for each way to write them.

    They are validated as Spark's rows, in frames that tasks make, and in one that the driver makes.
    """
    records, value = avro_records(spark, values, rows)
    jvm = Jvm(spark)
    validated = validator("id", value, None, 2**20).validate(records)
    found = []
    for way in ("rows", "frames", "frame"):
        table = f"bronze.files_{next(_NUMBERS)}_{way}"
        columns = bronze.table_columns(validated.schema())
        bronze.create_table(spark, table, columns, partitioned or "truncate(1, _kafka_topic)")
        first_snapshot(jvm, table)
        spark.sql(f"alter table lake.{table} create branch b")
        of = layout(jvm, jvm.iceberg_table(table))
        if way == "rows":
            good = validated.records.where("_error is null")
            append_rows(table_rows(good, validated.columns, table, 1, BEGAN), COMMIT, table, "b")
        else:
            maker = frame_maker(spark, of.columns, of.partition, of.spec, value, None, 2**20)
            assert maker is not None
            made = maker.of_batch(spark, ("t", "id"), 1, BEGAN, 0)
            if way == "frames":
                files = write_frames(spark, made.in_tasks(kafka_rows(records)), of, table)
            else:
                frame = made.here(kafka_rows_here(records))
                assert frame is not None
                files = write_frame(spark, frame, of, jvm.iceberg_table(table))
            assert made.counts().rows == rows
            assert committed(spark, table, files) == rows
        spark.sql(f"call lake.system.fast_forward('{table}', 'main', 'b')")
        found.append((spark.table(f"lake.{table}"), spark.table(f"lake.{table}.files")))
    return found


def committed(spark: SparkSession, table: str, files: list[Any]) -> int:
    """Commit data files to the branch; how many rows they have."""
    append = Jvm(spark).iceberg_table(table).newAppend().toBranch("b")
    for file in files:
        append = append.appendFile(file)
    append.commit()
    return sum(int(file.recordCount()) for file in files)


def described(files: Any) -> list[dict[str, Any]]:
    """What a planner knows of files, but their paths and sizes."""
    names = [
        "partition", "record_count", "value_counts", "null_value_counts", "nan_value_counts",
        "lower_bounds", "upper_bounds", "spec_id", "sort_order_id", "content", "file_format",
        "key_metadata", "equality_ids", "split_offsets",
    ]  # fmt: skip
    names = [name for name in names if name in files.columns]
    # Iceberg gives no split offsets to who does not read the size, too.
    rows = [row.asDict(True) for row in files.select("file_size_in_bytes", *names).collect()]
    return sorted(({name: row[name] for name in names} for row in rows), key=str)


def test_each_type_has_the_values_bounds_and_counts_that_iceberg_writes(
    spark: SparkSession,
) -> None:
    values = {f"c{number}": value for number, value in enumerate(TYPES.values())}
    (theirs, their_files), *made = each_way(spark, values)
    for ours, our_files in made:
        assert [ours.schema[name].dataType.simpleString() for name in values] == list(TYPES)
        # As text: NaN is not itself.
        order = "_kafka_offset"
        assert str(ours.orderBy(order).collect()) == str(theirs.orderBy(order).collect())
        assert described(our_files) == described(their_files)


def test_nan_counts_of_a_struct_are_those_that_iceberg_writes(spark: SparkSession) -> None:
    value = "case when id % 2 = 0 then named_struct('x', if(id % 4 = 0, double('NaN'), 1d)) end"
    (_, their_files), *made = each_way(spark, {"c": value})
    # Iceberg's own writer counts a null struct's fields neither as values nor as nulls.
    counts = ("nan_value_counts", "value_counts[2] - null_value_counts[2] as there")
    theirs = their_files.selectExpr(*counts).collect()
    assert all(files.selectExpr(*counts).collect() == theirs for _, files in made)


def test_a_column_with_a_value_beyond_4_kib_has_no_bounds(spark: SparkSession) -> None:
    value = "case when id = 7 then repeat('z', 10000) else 'short' end"
    (theirs, _), *made = each_way(spark, {"c": value, "n": "id"})
    for ours, our_files in made:
        order = "_kafka_offset"
        assert ours.orderBy(order).collect() == theirs.orderBy(order).collect()
        (file,) = described(our_files)
        assert 1 not in file["lower_bounds"].keys() | file["upper_bounds"].keys()
        assert 2 in file["lower_bounds"].keys() & file["upper_bounds"].keys()
        assert file["value_counts"] | {1: ROWS, 2: ROWS} == file["value_counts"]


@pytest.mark.parametrize("partitioned", PARTITIONS)
def test_rows_go_into_the_partitions_that_iceberg_says(
    spark: SparkSession, partitioned: str
) -> None:
    (theirs, their_files), *made = each_way(spark, COLUMNS, partitioned, 1_000)
    for ours, our_files in made:
        order = "_kafka_offset"
        assert ours.orderBy(order).collect() == theirs.orderBy(order).collect()
        assert described(our_files) == described(their_files)


def test_records_of_more_than_one_frame_are_none(spark: SparkSession) -> None:
    spec = getattr(Jvm(spark).packages, "org.apache.iceberg.PartitionSpec").unpartitioned()

    def rows_of_frame(rows: int) -> int | None:
        records, value = avro_records(spark, {"c": "repeat('x', 1000000)"}, rows)
        validated = validator("id", value, None, 2**20).validate(records)
        columns = bronze.table_columns(validated.schema())
        maker = frame_maker(spark, columns, StructType([]), spec, value, None, 2**20)
        assert maker is not None
        made = maker.of_batch(spark, ("t", "id"), 1, BEGAN, 0)
        frame = made.here(kafka_rows_here(records))
        return None if frame is None else made.counts().rows

    assert rows_of_frame(9) == 9
    assert rows_of_frame(10) is None


@pytest.fixture
def table(spark: SparkSession) -> str:
    """A table of one column and a branch."""
    table = f"bronze.files_{next(_NUMBERS)}"
    spark.sql(f"create table lake.{table} (id bigint) using iceberg")
    first_snapshot(Jvm(spark), table)
    spark.sql(f"alter table lake.{table} create branch b")
    return table


def frames(spark: SparkSession, ids: Iterable[range]) -> Any:
    """Frames of rows with a number each, all in one task."""
    made = [ipc_stream(pa.record_batch({"id": pa.array(each, pa.int64())})) for each in ids]
    return Jvm(spark).parallelized(made).coalesce(1)


def append(spark: SparkSession, table: str, made: Any) -> int:
    of = layout(Jvm(spark), Jvm(spark).iceberg_table(table))
    return committed(spark, table, write_frames(spark, made, of, table))


def staged(spark: SparkSession, table: str) -> list[int]:
    rows = spark.sql(f"select id from lake.{table} version as of 'b' order by id").collect()
    return [row.id for row in rows]


def files_on_disk(spark: SparkSession, table: str) -> list[Path]:
    place = str(Jvm(spark).iceberg_table(table).location()).removeprefix("file:")
    return [file for file in Path(place, "data").rglob("*") if file.is_file()]


def test_large_files_are_split_where_row_groups_begin(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"alter table lake.{table} set tblproperties ('write.parquet.row-group-size-bytes' = "
        "'240000', 'write.target-file-size-bytes' = '500000', 'write.parquet.compression-codec' "
        "= 'uncompressed')"
    )
    append(spark, table, frames(spark, (range(i, i + 10_000) for i in range(0, 300_000, 10_000))))
    files = spark.sql(
        "select record_count, file_size_in_bytes, split_offsets "
        f"from lake.{table}.files version as of 'b'"
    ).collect()
    assert [file.record_count for file in files] == [60_000] * 5
    # Of numbers that all differ, eight bytes each.
    for first, second in (file.split_offsets for file in files):
        assert first == 4
        assert 240_000 < second - first < 300_000
    read = spark.read.option("branch", "b").option("split-size", "1000").table(f"lake.{table}")
    assert read.rdd.getNumPartitions() == sum(len(file.split_offsets) for file in files)
    assert [row.id for row in read.orderBy("id").collect()] == list(range(300_000))


@pytest.mark.parametrize(("how", "why"), [("dies", "crashed"), ("fails", "ValueError: not so")])
def test_what_arrow_cannot_write_is_not_staged_and_says_why(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, how: str, why: str
) -> None:
    def fails(_form: object) -> Any:
        def run(batches: Any) -> Any:
            import os

            for _ in batches:
                if how == "dies":
                    os._exit(1)
                raise ValueError("not so")

        return run

    monkeypatch.setattr(parquet, "parquet_parts", fails)
    with pytest.raises(FilesNotWritten, match=why):
        append(spark, table, frames(spark, [range(10)]))
    assert staged(spark, table) == []


def test_a_task_that_fails_leaves_no_file_and_no_commit(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"alter table lake.{table} set tblproperties ('write.parquet.row-group-size-bytes' = '9')"
    )
    # Behind more bytes than lie between a worker and its task.
    many = frames(spark, (range(i, i + 10_000) for i in range(0, 2_000_000, 10_000)))
    rows = spark.range(1).selectExpr("raise_error('no') as frame")._jdf
    last = many.union(rows.queryExecution().toRdd().toJavaRDD())
    with pytest.raises(FilesNotWritten, match="no"):
        append(spark, table, last.coalesce(1))
    assert files_on_disk(spark, table) == []
    assert staged(spark, table) == []


def test_frames_of_a_table_that_got_columns_meanwhile_are_made_again(
    spark: SparkSession, table: str
) -> None:
    of = layout(Jvm(spark), Jvm(spark).iceberg_table(table))
    spark.sql(f"alter table lake.{table} add column more string")
    with pytest.raises(ColumnsChanged, match="changed concurrently"):
        write_frames(spark, frames(spark, [range(10)]), of, table)
