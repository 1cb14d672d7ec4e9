"""Bronze tables as the dbt sources declare them, filled without Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import literal_rows
from spark_ingest.operate import reconciliations

Row = Mapping[str, Any]
"""Values by column; what is missing is null. Times and money are text, times UTC."""


def create_bronze(spark: SparkSession, project: Path) -> None:
    """Make every bronze table of a project, empty, and ingest's own tables."""
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    commit_log.create(spark)
    reconciliations.create(spark)
    if "table_uuid" not in spark.table(commit_log.TABLE).columns:
        spark.sql(f"alter table {commit_log.TABLE} add column table_uuid string")
    for table, columns in declared_tables(project):
        ddl = ", ".join(f"{column['name']} {column['data_type']}" for column in columns)
        spark.sql(f"create table {table} ({ddl}) using iceberg partitioned by (days(_ingested_at))")


def declared_tables(project: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Of each stream, its bronze table and its columns with their types."""
    for file in sorted((project / "models/staging").glob("*/_*__sources.yml")):
        for source in yaml.safe_load(file.read_text())["sources"]:
            for table in source["tables"]:
                if "ingest" in table.get("config", {}).get("meta", {}):
                    name = f"{source['schema']}.{table['identifier']}"
                    yield name, table["columns"]


def tables_made(project: Path) -> str:
    """The statement that notes of each table of a project that ingest made it, just now."""
    rows = ", ".join(
        f"('{table}', 0, 'topic', null, array(), 0, 0, current_timestamp(), 'table')"
        for table, _ in declared_tables(project)
    )
    return (
        f"insert into {commit_log.TABLE} (table_name, commit_id, kafka_topic, kafka_topic_id,"
        f" offsets, row_count, quarantined_count, committed_at, kind) values {rows}"
    )


def append(spark: SparkSession, table: str, rows: Sequence[Row]) -> int:
    """Commit rows to a bronze table as ingest does; the commit's number.

    A row says what it is in Kafka; when it was ingested and in which commit is added.
    """
    newest = spark.table(table).agg(F.max("_commit_id")).first()
    commit_id = ((newest and newest[0]) or 0) + 1
    columns = spark.table(table).schema.fields
    texts = StructType([StructField(column.name, StringType()) for column in columns])
    values = [
        tuple(_text(row.get(column.name)) for column in columns)
        for row in ({"_is_tombstone": False, **row} for row in rows)
    ]
    now = {"_ingested_at": F.current_timestamp(), "_commit_id": F.lit(commit_id)}
    literal_rows(spark, values, texts).withColumns(now).select(
        [_value(column).cast(column.dataType).alias(column.name) for column in columns]
    ).writeTo(table).append()
    return commit_id


def add(spark: SparkSession, table: str, rows: Sequence[Row]) -> int:
    """Append rows to a table as they are, such as ingest's own; how many.

    Lists and objects may be nested, and bytes are Base64, as in JSON.
    """
    text = StructType([StructField("row", StringType())])
    literal_rows(spark, [(json.dumps(row),) for row in rows], text).select(
        F.from_json("row", spark.table(table).schema, {"mode": "FAILFAST"}).alias("row")
    ).select("row.*").writeTo(table).append()
    return len(rows)


def _value(column: StructField) -> Column:
    # What ingest alone knows, headers and bytes, is not made up here.
    if isinstance(column.dataType, ArrayType | BinaryType):
        return F.lit(None)
    if isinstance(column.dataType, StructType):
        return F.from_json(column.name, column.dataType, {"mode": "FAILFAST"})
    return F.col(column.name)


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        return json.dumps(value)
    return None if value is None else str(value)
