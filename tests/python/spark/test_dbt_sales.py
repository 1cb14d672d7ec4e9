"""dbt typed by hand on a lake with every kind of sale: early, late, sent twice, deleted.

Fails when a cell of a mart is not what DuckDB computes from the same records, in any time zone.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.install import spark_conf
from sandbox.settings import Home
from tests.python.programs import ran
from tests.python.spark.sales_check import Record, Trial, assert_marts_are_as_expected, run_trial

NEW_YORK = "America/New_York"
COUNTRIES = [
    "Germany",
    "Japan",
    "Côte d'Ivoire",
    "Korea, Republic of",
    "United States",
    "Yemen",
    "Sudan",
    "Atlantis",
    'Nowhere, "quoted"',
]
# Moments that windows get wrong: edges, fractions, before 1970, and the hours that New
# York's clocks skip or have twice.
MOMENTS = [
    "2026-01-01 10:10:00",
    "2026-01-01 10:09:59.999999",
    "2026-01-01 10:15:00.000001",
    "1970-01-01 00:00:00",
    "1969-12-31 23:59:59.5",
    "1969-07-20 20:17:40",
    "1901-02-03 04:05:06.789",
    "2026-03-08 02:30:00",
    "2026-03-08 07:00:00",
    "2026-11-01 05:30:00",
    "2026-11-01 06:30:00",
    "2100-02-28 23:59:59.999999",
]


def text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"


def sale(payment_id: int, offset: int, **other: Any) -> Record:
    """A sale with values of its own; ``other`` replaces some."""
    usual = Record(
        payment_id=payment_id,
        customer_id=payment_id % 7,
        amount=f"{payment_id % 13}.{payment_id % 100:02d}",
        payment_date="2026-01-01 10:00:00",
        city="Lyon" if payment_id % 2 else None,
        district=None if payment_id % 3 else "Rhône",
        country=COUNTRIES[payment_id % len(COUNTRIES)],
        _kafka_topic_id="first",
        _kafka_partition=payment_id % 4,
        _kafka_offset=offset,
        _kafka_timestamp="2026-01-01 10:00:01",
    )
    return replace(usual, **other)


def records() -> list[Record]:
    """Some hundred sales of two hours, some late, and every odd one we know of."""
    chance = random.Random(7)
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    made = []
    for number in range(1, 401):
        paid_at = start + timedelta(microseconds=chance.randrange(7_200_000_000))
        delay = timedelta(seconds=chance.random() * (1800 if number % 20 == 0 else 2))
        made.append(
            sale(number, number, payment_date=text(paid_at), _kafka_timestamp=text(paid_at + delay))
        )
    made += [
        sale(1000 + number, 1000 + number, payment_date=moment, _kafka_timestamp=moment)
        for number, moment in enumerate(MOMENTS)
    ]
    made += [
        # Sent again in its partition, by a producer whose clock is behind.
        sale(5, 2000, amount="100.01", _kafka_timestamp="2020-01-01 00:00:00"),
        # Sent again in another partition: the later time wins, and then the position.
        sale(6, 1, amount="100.02", _kafka_partition=3, _kafka_timestamp="2027-01-01 00:00:00"),
        sale(7, 9000, amount="100.03", _kafka_partition=0, _kafka_timestamp="2020-01-01 00:00:00"),
        sale(3001, 7001, amount="1.00", _kafka_partition=0),
        sale(3001, 6001, amount="2.00", _kafka_partition=1),
        sale(3002, 8, amount="3.00"),
        sale(3002, 2, amount="4.00", _kafka_topic_id="second"),
        # No country at all, the smallest and the largest amount.
        sale(3003, 3003, country=None),
        sale(3004, 3004, amount="0.00"),
        sale(3005, 3005, amount="99999999.99"),
        sale(3006, 3006, amount="-5.25"),
    ]
    made += [
        Record(
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            "first",
            2,
            offset,
            "2026-01-01 10:00:01",
            _is_tombstone=True,
        )
        for offset in (5000, 5001)
    ]
    return made


@pytest.fixture(scope="module")
def trial(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The project of this checkout, built where clocks show the time of New York."""
    folder = tmp_path_factory.mktemp("sales")
    return run_trial(folder, records(), zone=NEW_YORK)


def dbt(trial: Trial, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Type dbt in the root of the checkout, on the trial's lake."""
    # Where Spark's settings lie in a path with a blank, one line of Java's is not taken out.
    conf = trial.home.path.parent / "conf"
    spark_conf.render(trial.home, conf)
    return ran(
        [str(Path(sys.executable).parent / "dbt"), "--no-use-colors", *arguments],
        env=trial.environment(
            **{
                "DBT_TARGET_PATH": str(trial.out / "target"),
                "DBT_LOG_PATH": str(trial.out / "logs"),
                "SPARK_CONF_DIR": str(conf),
                **environment,
            }
        ),
        timeout=600,
    )


def test_every_cell_of_the_marts_is_what_duckdb_finds_whatever_the_zone(trial: Trial) -> None:
    assert_marts_are_as_expected(trial)


def test_every_payment_is_one_sale_and_no_tombstone_is(trial: Trial) -> None:
    built = trial.marts("paid_at")["fct_rental_sales"]
    sent = {str(r.payment_id) for r in records() if r.payment_id is not None}

    assert sorted(row[0] for row in built) == sorted(sent)


def test_a_sale_is_in_two_windows_of_ten_minutes_every_five(trial: Trial) -> None:
    marts = trial.marts("paid_at")

    in_windows = sum(int(row[-1]) for row in marts["fct_regional_sales_windows"])

    assert in_windows == 2 * len(marts["fct_rental_sales"])


@pytest.mark.nightly
def test_freshness_is_the_same_in_another_zone_and_says_nothing_but_its_result(
    trial: Trial,
) -> None:
    sales = ["--select", "source:pagila"]
    done = dbt(trial, "--warn-error", "source", "freshness", *sales, TZ=NEW_YORK)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    results = json.loads((trial.out / "target/sources.json").read_text())["results"]
    # Tables of a database that nobody captures are empty, and not stale.
    assert len(results) > 1
    assert {each["status"] for each in results} == {"pass"}
    (result,) = [each for each in results if each["unique_id"].endswith(".sales")]
    loaded_at = datetime.fromisoformat(result["max_loaded_at"])
    asked_at = datetime.fromisoformat(result["snapshotted_at"])
    now = datetime.now(tz=UTC)
    assert now - timedelta(minutes=5) < asked_at <= now
    assert now - timedelta(minutes=30) < loaded_at < asked_at
