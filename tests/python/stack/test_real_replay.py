"""A person's own sales the whole way: replayed through Kafka, ingested, built, compared.

Fails when a mart differs from what DuckDB computes from a person's own file.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import Stack, own_stack
from tests.python.project_copy import copy_project
from tests.python.spark.sales_check import Trial, write_records
from tests.python.spark.sales_trial import CLOCKS, MARTS
from tests.python.spark.test_real_sales import (
    REGIONS,
    SALES,
    VARIABLE,
    real_data,
    records_of,
    use_regions,
)

PRODUCTS, PURCHASES = "smoothie_products.csv", "smoothie_purchases_290.json"
# The positions in Kafka are known to the tables alone.
POSITIONS = {"_kafka_topic_id", "_kafka_partition", "_kafka_offset"}
EXPORT = """
import json
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.python.spark.lake_program import texts
from tests.python.spark.sales_trial import export
spark = SparkSession.builder.getOrCreate()
export(spark, Path(sys.argv[1]))
queries = json.loads(sys.argv[2])
found = {name: sorted(texts(spark, query)) for name, query in queries.items()}
Path(sys.argv[1], "queries.json").write_text(json.dumps(found))
"""
# The same questions to our marts and to the files; times as microseconds since 1970.
ASKED = {
    "enriched": """
        select
            unix_micros(purchased_at), product_id, product_category, product_name,
            product_size, product_cogs_amount, product_price_amount,
            purchase_price_amount, quantity, is_member, has_supplements,
            supplement_price_amount, total_purchase_amount, has_fruit, has_veggies,
            has_nuts, has_caffeine, is_discrepant, is_known_product
        from marts.fct_purchases_enriched
    """,
    "windows": """
        select
            product_id, unix_micros(window_start_at), unix_micros(window_end_at),
            sales_amount, quantity, purchase_count
        from marts.fct_product_sales_windows
    """,
    "totals": """
        select product_id, sales_amount, quantity, purchase_count
        from marts.rpt_product_sales
    """,
    "running": """
        select
            unix_micros(purchased_at), product_id, running_purchase_count,
            running_quantity, running_sales_amount
        from marts.fct_product_running_totals
    """,
}
EXPECTED = {
    "enriched": """
        select
            epoch_us(bought_at), product_id, "Category", "Item", "Size",
            cast("COGS" as decimal(18, 2)), cast(products.price as decimal(18, 2)),
            lines.price,
            quantity, is_member, add_supplements, supplement_price, total,
            "ContainsFruit" = 'TRUE', "ContainsVeggies" = 'TRUE',
            "ContainsNuts" = 'TRUE', "ContainsCaffeine" = 'TRUE',
            total <> round(
                quantity * (lines.price + supplement_price) * (1 - discount), 2
            ),
            "ID" is not null
        from lines left join products on product_id = "ID"
    """,
    "windows": """
        select
            product_id, epoch_us(begins_at), epoch_us(begins_at + interval 10 minutes),
            sum(total), sum(quantity), count(*)
        from (
            select
                lines.*, time_bucket(interval 5 minutes, bought_at, timestamp '1970-01-01')
                - step * interval 5 minutes as begins_at
            from lines cross join range(0, 2) as steps(step)
        )
        group by all
    """,
    "totals": """
        select product_id, sum(total), sum(quantity), count(*) from lines group by all
    """,
    "running": """
        select
            epoch_us(this.bought_at), this.product_id, count(*), sum(other.quantity),
            sum(other.total)
        from lines as this
        join lines as other
            on this.product_id = other.product_id and other.bought_at <= this.bought_at
        group by this.bought_at, this.product_id
    """,
}


@dataclass(frozen=True)
class Replayed:
    """A sandbox that holds these files and nothing else, and the project for it."""

    stack: Stack
    folder: Path
    trial: Trial
    queries: dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replayed]:
    """The files sent through Kafka, ingested, and built for both clocks of sales."""
    data = real_data()
    assert data is not None
    folder = tmp_path_factory.mktemp("replayed")
    with own_stack(folder / "own home") as own:
        yield _replay(data, folder, own)


def _replay(data: Path, folder: Path, own: Stack) -> Replayed:
    # Avro's timestamp-millis and Kafka's timestamps hold milliseconds.
    records = [
        replace(
            record,
            payment_date=_milliseconds(record.payment_date),
            _kafka_timestamp=_milliseconds(record._kafka_timestamp),
        )
        for record in records_of(data / SALES)
    ]
    project = copy_project(folder / "project")
    use_regions(data / REGIONS, project)
    trial = Trial(own.home, project, folder / "out", folder / "records.csv")
    write_records(trial.records, records)
    sales = folder / "sales.csv"
    with (data / SALES).open(newline="") as source, sales.open("w", newline="") as out:
        rows = csv.reader(source, delimiter="|")
        writer = csv.writer(out, delimiter="|")
        writer.writerow([*next(rows), "sent_at"])
        writer.writerows(
            [*row, f"{record._kafka_timestamp}+00"]
            for row, record in zip(rows, records, strict=True)
        )

    own.run("sandbox", "replay", str(sales), "--stream", "pagila.sales",
            "--timestamps", "sent_at")  # fmt: skip
    own.run("sandbox", "replay", str(data / PRODUCTS), "--stream", "smoothies.products",
            "--column", "product_id=ID", "--column", "inventory_level=Inventory",
            "--column", "propensity_to_buy=_RangeWeight",
            "--set", "event_time=2022-08-31", "--timestamps", "event_time")  # fmt: skip
    own.run("sandbox", "replay", str(data / PURCHASES), "--stream", "smoothies.purchases",
            "--timestamps", "transaction_time")  # fmt: skip
    own.run("spark-ingest", "run", "--once")
    verified = own.run("spark-ingest", "verify").stdout
    assert f"all {len(records) + 27 + 290} records" in verified

    queries = {}
    for clock in CLOCKS:
        own.run(
            "dbt", "--warn-error", "build", "--project-dir", str(project),
            "--profiles-dir", str(project / "profiles"),
            "--target-path", str(folder / "target"),
            "--select", "+group:rentals", "+group:smoothies", "dim_dates",
            "--vars", f"{{sales_window_time: {clock}}}", "--full-refresh",
            "--exclude-resource-type", "test", "unit_test",
        )  # fmt: skip
        subprocess.run(
            [sys.executable, "-c", EXPORT, trial.out / clock, json.dumps(ASKED)],
            cwd=PROJECT,
            env={**own.env, "PYTHONPATH": str(PROJECT)},
            check=True,
            timeout=600,
        )
        queries = json.loads((trial.out / clock / "queries.json").read_text())
    return Replayed(own, data, trial, queries)


needs_files = pytest.mark.skipif(
    real_data() is None,
    reason=f"{VARIABLE} names no folder with {SALES}, {REGIONS} and the smoothies' files",
)


@needs_files
def test_replayed_sales_have_the_totals_and_windows_that_duckdb_finds(replayed: Replayed) -> None:
    for clock in CLOCKS:
        built, expected = replayed.trial.marts(clock), replayed.trial.expected(clock)
        for mart, columns in MARTS.items():
            kept = [i for i, column in enumerate(columns) if column not in POSITIONS]
            assert _only(built[mart], kept) == _only(expected[mart], kept), (mart, clock)


@needs_files
@pytest.mark.parametrize("question", ASKED)
def test_replayed_purchases_answer_as_duckdb_does(replayed: Replayed, question: str) -> None:
    with duckdb.connect() as files:
        files.execute(
            "create table products as select * from read_csv("
            f"'{replayed.folder / PRODUCTS}', header = true, all_varchar = true)"
        )
        files.execute(
            f"""
            create table lines as
            select
                cast(transaction_time as timestamp) as bought_at,
                product_id, quantity, is_member, add_supplements,
                cast(price as decimal(18, 2)) as price,
                cast(member_discount as decimal(4, 2)) as discount,
                cast(supplement_price as decimal(18, 2)) as supplement_price,
                cast(total_purchase as decimal(18, 2)) as total
            from read_json('{replayed.folder / PURCHASES}')
            """
        )
        rows = files.execute(EXPECTED[question]).fetchall()

    expected = sorted([_said(value) for value in row] for row in rows)
    assert len(expected) >= 20
    assert replayed.queries[question] == expected


def _said(value: object) -> str:
    """As Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _milliseconds(moment: str | None) -> str:
    assert moment is not None
    cut = datetime.fromisoformat(moment)
    return f"{cut:%Y-%m-%d %H:%M:%S}.{cut.microsecond // 1000:03d}"


def _only(rows: list[tuple[str, ...]], columns: list[int]) -> list[tuple[str, ...]]:
    return sorted(tuple(row[i] for i in columns) for row in rows)
