"""The marts of sales, computed a second time without dbt or Spark, cell by cell.

DuckDB reads the records that a trial put into bronze and the region list, finds the last
record of each payment and its windows in its own way, and the two must not differ.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import duckdb
import pytest

from sandbox.install import spark_conf
from sandbox.settings import PROJECT, Home
from tests.python.programs import ran
from tests.python.spark.sales_trial import CLOCKS, MARTS

TRIAL = Path(__file__).with_name("sales_trial.py")
TRIAL_SECONDS = 1100


@dataclass(frozen=True)
class Record:
    """A record of the topic as bronze holds it; times are UTC as text."""

    payment_id: int | None
    customer_id: int | None
    amount: str | None
    payment_date: str | None
    city: str | None
    district: str | None
    country: str | None
    _kafka_topic_id: str
    _kafka_partition: int
    _kafka_offset: int
    _kafka_timestamp: str
    _is_tombstone: bool = False


@dataclass(frozen=True)
class Trial:
    """A lake on which the project was built.

    Attributes:
        home: Whose lake it is.
        project: The dbt project that was built.
        out: Where the trial wrote: a folder of CSVs for each clock.
        records: The CSV that bronze was filled from.
    """

    home: Home
    project: Path
    out: Path
    records: Path

    def environment(self, **more: str) -> dict[str, str]:
        """What a program needs to use this lake."""
        kept = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        return {**kept, **self.home.environment(), **more}

    def marts(self, clock: str) -> dict[str, list[tuple[str, ...]]]:
        """What dbt built, by mart, rows in order."""
        return {mart: sorted(_rows(self.out / clock / f"{mart}.csv")) for mart in MARTS}

    def expected(
        self, clock: str, length: int = 10, slide: int = 5
    ) -> dict[str, list[tuple[str, ...]]]:
        """What should be there, by mart, rows in order; windows in minutes."""
        with duckdb.connect() as connection:
            connection.execute(
                _SALES,
                {
                    "records": str(self.records),
                    "regions": str(self.project / "seeds/sales_regions.csv"),
                },
            )
            connection.execute(_WINDOWS.format(clock=clock, length=length, slide=slide))
            return {
                mart: sorted(
                    tuple("\\N" if value is None else str(value) for value in row)
                    for row in connection.execute(query).fetchall()
                )
                for mart, query in _EXPECTED.items()
            }


def write_records(file: Path, records: Iterable[Record]) -> None:
    """Write records as the CSV that a trial reads; ``\\N`` is null."""
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([field.name for field in fields(Record)])
        writer.writerows(
            ["\\N" if value is None else value for value in astuple(record)] for record in records
        )


def run_trial(
    folder: Path, records: Iterable[Record], project: Path = PROJECT, zone: str = "UTC"
) -> Trial:
    """Build a project on a new lake that holds the records.

    Args:
        folder: Where the lake and all else goes; made here.
        records: What the topic held.
        project: The dbt project.
        zone: The zone of the machine that runs it (the variable ``TZ``).
    """
    home = Home(folder.resolve() / "sand box")
    spark_conf.render(home, home.spark_conf)
    trial = Trial(home, project, home.path / "out", home.path / "records.csv")
    write_records(trial.records, records)
    done = ran(
        [sys.executable, TRIAL, project, trial.records, trial.out],
        env=trial.environment(TZ=zone, PYTHONPATH=str(PROJECT)),
        timeout=TRIAL_SECONDS,
    )
    if done.returncode != 0:
        pytest.fail(f"the trial failed\n{done.stdout}\n{done.stderr}")
    return trial


def assert_marts_are_as_expected(trial: Trial) -> None:
    """Compare every mart, for both clocks, cell by cell."""
    for clock in CLOCKS:
        built, expected = trial.marts(clock), trial.expected(clock)
        for mart in MARTS:
            assert built[mart] == expected[mart], f"{mart}, windows by {clock}"


def _rows(file: Path) -> list[tuple[str, ...]]:
    with file.open(newline="") as opened:
        return [tuple(row) for row in csv.reader(opened)]


# Times stay plain timestamps: DuckDB gives them no zone.
_SALES = r"""
create table sales as
with records as (
    select
        cast(payment_id as integer) as payment_id,
        cast(customer_id as integer) as customer_id,
        cast(amount as decimal(18, 2)) as amount,
        cast(payment_date as timestamp) as paid_at,
        city,
        district,
        coalesce(country, 'Unassigned') as country,
        _kafka_topic_id as topic_id,
        cast(_kafka_partition as integer) as partition,
        cast(_kafka_offset as bigint) as position,
        cast(_kafka_timestamp as timestamp) as _kafka_timestamp
    from read_csv(
        $records, header = true, all_varchar = true, nullstr = '\N', quote = '"'
    )
    where _is_tombstone = 'False'
),
by_partition as (
    select max_by(records, position) as record
    from records
    group by payment_id, topic_id, partition
),
last_records as (
    select unnest(max_by(
        record,
        row(record._kafka_timestamp, record.topic_id, record.partition, record.position)
    ))
    from by_partition
    group by record.payment_id
)
select last_records.*, coalesce(regions.sales_region, 'Unassigned') as sales_region
from last_records
left join read_csv($regions, header = true, all_varchar = true, quote = '"') as regions
    on last_records.country = regions.country
"""
_WINDOWS = """
create table windows as
with stepped as (
    select
        sales.*,
        time_bucket(
            interval '{slide} minutes', {clock}, timestamp '1970-01-01 00:00:00'
        ) - step * interval '{slide} minutes' as window_start
    from sales
    cross join range(0, 1 + {length} // {slide}) as steps(step)
)
select *, window_start + interval '{length} minutes' as window_end
from stepped
where {clock} >= window_start and {clock} < window_start + interval '{length} minutes'
"""
_EXPECTED = {
    "fct_rental_sales": """
        select
            payment_id, customer_id, city, district, country, sales_region, amount,
            epoch_us(paid_at), topic_id, partition, position, epoch_us(_kafka_timestamp)
        from sales
    """,
    "fct_regional_sales_windows": """
        select
            sales_region, epoch_us(window_start), epoch_us(window_end), sum(amount), count(*)
        from windows
        group by all
    """,
    "fct_country_sales_windows": """
        select country, epoch_us(window_start), epoch_us(window_end), sum(amount), count(*)
        from windows
        group by all
    """,
    "rpt_region_sales": """
        select sales_region, sum(amount), count(*) from sales group by all
    """,
    "rpt_country_sales": """
        select country, sum(amount), count(*) from sales group by all
    """,
}
