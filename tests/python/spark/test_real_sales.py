"""A person's own sales and region list, when there are some to try.

Fails when a mart differs from what DuckDB computes from a person's own sales.
"""

from __future__ import annotations

import csv
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.sales_check import Record, assert_marts_are_as_expected, run_trial

VARIABLE = "MILLRACE_REAL_DATA"
SALES, REGIONS = "pagila_sales_600.csv", "sales_regions.csv"


def real_data() -> Path | None:
    """The folder that has both files, if the environment names one."""
    folder = Path(os.environ.get(VARIABLE, ""))
    has_both = all((folder / name).is_file() for name in (SALES, REGIONS))
    return folder if VARIABLE in os.environ and has_both else None


def records_of(file: Path) -> list[Record]:
    """The sales as records that Kafka got some minutes after their payment."""
    records = []
    with file.open(newline="") as opened:
        for position, row in enumerate(csv.DictReader(opened, delimiter="|")):
            paid_at = datetime.fromisoformat(row["payment_date"]).astimezone(UTC)
            sent_at = paid_at + timedelta(minutes=7, seconds=int(row["payment_id"]) % 97)
            records.append(
                Record(
                    payment_id=int(row["payment_id"]),
                    customer_id=int(row["customer_id"]),
                    amount=row["amount"],
                    payment_date=f"{paid_at:%Y-%m-%d %H:%M:%S.%f}",
                    city=row["city"] or None,
                    district=row["district"] or None,
                    country=row["country"],
                    _kafka_topic_id="real",
                    _kafka_partition=int(row["customer_id"]) % 4,
                    _kafka_offset=position,
                    _kafka_timestamp=f"{sent_at:%Y-%m-%d %H:%M:%S.%f}",
                )
            )
    return records


def use_regions(file: Path, project: Path) -> None:
    """Put a region list in place of the project's seed, under the seed's column names.

    Such lists are typed by hand: a blank before a quote is no part of the value.
    """
    with file.open(newline="") as opened:
        _, *rows = csv.reader(opened, skipinitialspace=True)
    with (project / "seeds/sales_regions.csv").open("w", newline="") as opened:
        csv.writer(opened).writerows([["country", "sales_region"], *rows])


@pytest.mark.skipif(
    real_data() is None, reason=f"{VARIABLE} names no folder with {SALES} and {REGIONS}"
)
def test_real_sales_have_the_totals_and_windows_that_duckdb_finds(
    home: Home, tmp_path: Path
) -> None:
    folder = real_data()
    assert folder is not None
    records = records_of(folder / SALES)
    project = copy_project(tmp_path / "project")
    use_regions(folder / REGIONS, project)

    trial = run_trial(tmp_path, records, project)

    assert_marts_are_as_expected(trial)
    assert len(trial.marts("paid_at")["fct_rental_sales"]) == len(
        {record.payment_id for record in records}
    )
