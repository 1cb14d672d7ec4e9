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

from tests.python.spark.bronze_tables import append, create_bronze, tables_made

# A moment as microseconds since 1970: no zone between Spark and whoever compares.
_WINDOW = "unix_micros(window_start_at) unix_micros(window_end_at) sales_amount order_count"
_SALE = (
    "payment_id customer_id city district country sales_region sale_amount unix_micros(paid_at)"
    " _kafka_topic_id _kafka_partition _kafka_offset unix_micros(_kafka_timestamp)"
)
MARTS = {
    "fct_rental_sales": _SALE.split(),
    "fct_regional_sales_windows": ["sales_region", *_WINDOW.split()],
    "fct_country_sales_windows": ["country", *_WINDOW.split()],
    "rpt_region_sales": ["sales_region", "sales_amount", "order_count"],
    "rpt_country_sales": ["country", "sales_amount", "order_count"],
}
CLOCKS = ["paid_at", "_kafka_timestamp"]
# The first build makes and tests the sales; the other clock changes the windows alone, all
# of them. Unit tests look at no lake.
ALL = ["--select", "+group:rentals"]
WINDOWS_ONLY = [
    "--full-refresh",
    "--select",
    "fct_regional_sales_windows",
    "fct_country_sales_windows",
]


def fill_bronze(spark: SparkSession, project: Path, records: Path) -> None:
    """Create the bronze tables, and fill that of sales from a CSV (``\\N`` is null)."""
    create_bronze(spark, project)
    # Ingest makes all tables at its first start: those that are empty are not stale.
    spark.sql(tables_made(project))
    with records.open(newline="") as file:
        rows = [
            {name: None if value == "\\N" else value for name, value in row.items()}
            for row in csv.DictReader(file)
        ]
    for row in rows:
        row.update(
            {"_key": row["customer_id"], "_kafka_topic": "pagila.sales.avro", "_schema_id": "1"}
        )
    append(spark, "bronze.pagila__sales", rows)


def export(spark: SparkSession, into: Path) -> None:
    into.mkdir(parents=True)
    for mart, columns in MARTS.items():
        rows = spark.table(f"marts.{mart}").selectExpr(
            *[f"cast({column} as string)" for column in columns]
        )
        with (into / f"{mart}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                ["\\N" if value is None else value for value in row] for row in rows.collect()
            )


def main(project: Path, records: Path, out: Path) -> None:
    """Build what is made of sales, once for each clock."""
    spark = SparkSession.builder.getOrCreate()
    fill_bronze(spark, project, records)
    for clock in CLOCKS:
        place = [
            *("--log-path", str(out / "logs"), "--target-path", str(out / "target")),
            *("--project-dir", str(project), "--profiles-dir", str(project / "profiles")),
        ]
        chosen = ALL if clock == CLOCKS[0] else WINDOWS_ONLY
        done = dbtRunner().invoke(
            [
                *("--warn-error", "--no-use-colors", "build", *place, *chosen),
                *("--vars", json.dumps({"sales_window_time": clock})),
                *("--exclude-resource-type", "unit_test"),
            ]
        )
        if not done.success:
            sys.exit(1)
        export(spark, out / clock)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
