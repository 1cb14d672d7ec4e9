"""Build the project on a lake that holds given records, and write what came of it.

A program of its own, because the tests' own Spark has another lake open: it fills
``bronze.pagila__sales`` from a CSV, runs dbt in the same JVM once for each clock of the
sales windows, and writes every mart as CSV.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BRONZE = """
create table bronze.pagila__sales (
    payment_id int, customer_id int, amount decimal(10, 2), payment_date timestamp,
    city string, district string, country string, _key int, _kafka_key binary,
    _kafka_topic string, _kafka_topic_id string, _kafka_partition int,
    _kafka_offset bigint, _kafka_timestamp timestamp,
    _kafka_headers array<struct<key: string, value: binary>>, _schema_id int,
    _is_tombstone boolean, _ingested_at timestamp, _commit_id bigint
) using iceberg partitioned by (days(_ingested_at))
"""
# A moment as microseconds since 1970: no zone between Spark and whoever compares.
MARTS = {
    "fct_rental_sales": [
        "payment_id",
        "customer_id",
        "city",
        "district",
        "country",
        "sales_region",
        "sale_amount",
        "unix_micros(paid_at)",
        "_kafka_topic_id",
        "_kafka_partition",
        "_kafka_offset",
        "unix_micros(_kafka_timestamp)",
    ],
    "fct_regional_sales_windows": [
        "sales_region",
        "unix_micros(window_start_at)",
        "unix_micros(window_end_at)",
        "sales_amount",
        "order_count",
    ],
    "fct_country_sales_windows": [
        "country",
        "unix_micros(window_start_at)",
        "unix_micros(window_end_at)",
        "sales_amount",
        "order_count",
    ],
    "rpt_region_sales": ["sales_region", "sales_amount", "order_count"],
    "rpt_country_sales": ["country", "sales_amount", "order_count"],
}
CLOCKS = ["paid_at", "_kafka_timestamp"]
# The first build makes and tests all; the other clock changes the windows alone.
WINDOWS_ONLY = [
    "--select",
    "fct_regional_sales_windows",
    "fct_country_sales_windows",
    "--exclude-resource-type",
    "unit_test",
]


def fill_bronze(spark: SparkSession, records: Path) -> None:
    """Create the bronze table with the records of a CSV (``\\N`` is null)."""
    spark.sql("create schema if not exists bronze")
    spark.sql(BRONZE)
    rows = spark.read.csv(
        str(records), header=True, nullValue="\\N", quote='"', escape='"'
    )
    table = spark.table("bronze.pagila__sales")
    rows = rows.withColumns(
        {
            "_key": F.col("customer_id"),
            "_kafka_topic": F.lit("pagila.sales.avro"),
            "_schema_id": F.lit(1),
            "_ingested_at": F.current_timestamp(),
            "_commit_id": F.lit(1),
        }
    )
    wanted = [
        (F.col(field.name) if field.name in rows.columns else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in table.schema.fields
    ]
    rows.select(wanted).writeTo("bronze.pagila__sales").append()


def export(spark: SparkSession, into: Path) -> None:
    into.mkdir(parents=True)
    for mart, columns in MARTS.items():
        rows = spark.table(f"marts.{mart}").selectExpr(
            *[f"cast({column} as string)" for column in columns]
        )
        with (into / f"{mart}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                ["\\N" if value is None else value for value in row]
                for row in rows.collect()
            )


def main(project: Path, records: Path, out: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    fill_bronze(spark, records)
    for clock in CLOCKS:
        done = dbtRunner().invoke(
            [
                "--warn-error",
                "--no-use-colors",
                "--log-path",
                str(out / "logs"),
                "build",
                "--project-dir",
                str(project),
                "--profiles-dir",
                str(project / "profiles"),
                "--target-path",
                str(out / "target"),
                "--vars",
                json.dumps({"sales_window_time": clock}),
                *(WINDOWS_ONLY if clock != CLOCKS[0] else []),
            ]
        )
        if not done.success:
            sys.exit(1)
        export(spark, out / clock)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
