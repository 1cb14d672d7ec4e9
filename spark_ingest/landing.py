"""What a bronze table takes: the table grown to its topic's schemas, and its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ingest import bronze, quarantine
from spark_ingest.errors import ServiceUnavailable
from spark_ingest.judge import Judged, judge
from spark_ingest.session import CATALOG, Jvm
from spark_ingest.topic_schemas import Schemas


def judge_with_registry(records: DataFrame, topic_id: str, schemas: Schemas) -> Judged:
    """Judge records of a topic with the schemas that are registered now.

    Args:
        records: Rows of Spark's Kafka source, with headers.
        topic_id: Kafka's UUID of their topic.
        schemas: The topic's schemas.

    Raises:
        ServiceUnavailable: The registry does not answer, or has lost the subject.
    """
    schemas.hold(records.sparkSession)
    value = schemas.value()
    if not value.usable and not value.misfits:
        # The table was made from a schema: that there is none now is no record's fault.
        raise ServiceUnavailable(
            f"{schemas.registry.url} has no schema under {schemas.stream.topic}-value "
            "any more: bring the subject back, or mend registry.url in profiles/ingest.yml"
        )
    judged = judge(records, topic_id, value, schemas.key())
    too_long = quarantine.size_verdict(schemas.stream.ingest.max_value_bytes)
    return replace(
        judged,
        records=judged.records.withColumn("_verdict", F.coalesce(too_long, "_verdict")),
    )


def grow_table(spark: SparkSession, table: str, judged: Judged) -> None:
    """Give a table the columns that judged records need.

    Raises:
        ConfigurationError: A column's type cannot become the wanted one.
    """
    wanted = bronze.table_columns(judged.schema())
    if bronze.missing_columns(spark, table, wanted):
        bronze.evolve(Jvm(spark), table, wanted)


def table_rows(
    good: DataFrame,
    columns: dict[str, Column],
    table: str,
    commit_id: int,
    began: datetime,
) -> DataFrame:
    """Good records as their table's columns; those that no writer has are null.

    Args:
        good: Judged records without those that bronze cannot take.
        columns: The table's columns for them, without the metadata.
        table: ``schema.name``.
        commit_id: Of the commit that will publish them.
        began: When its batch began: ``_ingested_at``.
    """
    have = {name: F.col(name) for name in bronze.METADATA.names if name in good.columns}
    have |= columns
    types = {
        f.name: f.dataType
        for f in good.select(*(c.alias(n) for n, c in columns.items())).schema.fields
    }
    have["_schema_id"] = F.col("_value_schema_id")
    have["_is_tombstone"] = F.col("_kafka_value").isNull()
    have["_ingested_at"] = of_batch(began)
    have["_commit_id"] = of_batch(commit_id)
    fields = good.sparkSession.table(f"{CATALOG}.{table}").schema.fields
    return good.select(
        *(
            bronze.conform(
                have.get(f.name, F.lit(None)), types.get(f.name), f.dataType
            ).alias(f.name)
            for f in fields
        )
    )


def of_batch(value: object) -> Column:
    """A value that differs from batch to batch, among columns of Kafka's records.

    As a literal it would stand in the code that Spark generates for the plan, and every batch
    would be compiled anew and begin cold: half a second of a core. Spark refers to an array,
    and the topic, which is never null, keeps it from taking out the element beforehand.
    """
    return F.get(
        F.array(F.lit(value), F.lit(value)), F.isnull("_kafka_topic").cast("int")
    )
