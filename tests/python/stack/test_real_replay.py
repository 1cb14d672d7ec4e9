"""A person's own sales the whole way: replayed through Kafka, ingested, built, compared."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sandbox import stack as services
from sandbox.settings import PROJECT
from tests.python.conftest import Stack, make_home, program_environment
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

# The positions in Kafka are known to the tables alone.
POSITIONS = {"_kafka_topic_id", "_kafka_partition", "_kafka_offset"}
EXPORT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.python.spark.sales_trial import export
export(SparkSession.builder.getOrCreate(), Path(sys.argv[1]))
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stack]:
    """A sandbox for this test alone: it holds nothing but these sales."""
    home = make_home(tmp_path / "own home")
    try:
        services.up(home)
        yield Stack(home, program_environment(home))
    finally:
        services.down(home)


@pytest.mark.skipif(
    real_data() is None, reason=f"{VARIABLE} names no folder with {SALES} and {REGIONS}"
)
def test_replayed_sales_have_the_totals_and_windows_that_duckdb_finds(
    own: Stack, tmp_path: Path
) -> None:
    folder = real_data()
    assert folder is not None
    # Avro's timestamp-millis and Kafka's timestamps hold milliseconds.
    records = [
        replace(
            record,
            payment_date=_milliseconds(record.payment_date),
            _kafka_timestamp=_milliseconds(record._kafka_timestamp),
        )
        for record in records_of(folder / SALES)
    ]
    project = copy_project(tmp_path / "project")
    use_regions(folder / REGIONS, project)
    trial = Trial(own.home, project, tmp_path / "out", tmp_path / "records.csv")
    write_records(trial.records, records)
    replayed = tmp_path / "sales.csv"
    with (
        (folder / SALES).open(newline="") as source,
        replayed.open("w", newline="") as out,
    ):
        rows = csv.reader(source, delimiter="|")
        writer = csv.writer(out, delimiter="|")
        writer.writerow([*next(rows), "sent_at"])
        writer.writerows(
            [*row, f"{record._kafka_timestamp}+00"]
            for row, record in zip(rows, records, strict=True)
        )

    own.run(
        "sandbox", "replay", str(replayed), "--stream", "pagila.sales", "--timestamps", "sent_at"
    )  # fmt: skip
    own.run("spark-ingest", "run", "--once")
    assert (
        f"every one of {len(records)} records"
        in own.run("spark-ingest", "verify").stdout
    )

    for clock in CLOCKS:
        own.run(
            "dbt", "--warn-error", "build", "--project-dir", str(project),
            "--profiles-dir", str(project / "profiles"),
            "--target-path", str(tmp_path / "target"),
            "--vars", f"{{sales_window_time: {clock}}}", "--exclude-resource-type", "unit_test",
        )  # fmt: skip
        subprocess.run(
            [sys.executable, "-c", EXPORT, trial.out / clock],
            cwd=PROJECT,
            env={**own.env, "PYTHONPATH": str(PROJECT)},
            check=True,
            timeout=600,
        )
        built, expected = trial.marts(clock), trial.expected(clock)
        for mart, columns in MARTS.items():
            kept = [i for i, column in enumerate(columns) if column not in POSITIONS]
            assert _only(built[mart], kept) == _only(expected[mart], kept), (
                mart,
                clock,
            )


def _milliseconds(moment: str | None) -> str:
    assert moment is not None
    cut = datetime.fromisoformat(moment)
    return f"{cut:%Y-%m-%d %H:%M:%S}.{cut.microsecond // 1000:03d}"


def _only(rows: list[tuple[str, ...]], columns: list[int]) -> list[tuple[str, ...]]:
    return sorted(tuple(row[i] for i in columns) for row in rows)
