"""Marts built by increments hold what a full refresh makes, cell by cell.

Fails when after late, re-sent, moved or lost rows, or a run that died, a mart differs from a
full refresh.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import PROJECT, Home
from tests.python.spark.lake_steps import do_steps
from tests.python.world.records import (
    DAYS,
    DAYS_BETWEEN,
    LATE_PRODUCT,
    LONELY_DAY,
    LONELY_PURCHASE,
    LONELY_SALE,
    SCATTERED_DAYS,
    Records,
    catalogue,
)

# The histories of captured tables have trials of their own.
FOLDERS = [f"models/marts/{domain}" for domain in ("rentals", "smoothies", "shared")]
MARTS = sorted(
    f"marts.{file.stem}" for folder in FOLDERS for file in (PROJECT / folder).glob("*.sql")
)
FACTS = [mart for mart in MARTS if mart.startswith("marts.fct_")]
RUN = ["run", "--select", *FOLDERS]
# One that reads bronze, and one that reads it.
SOME = ["fct_rental_sales", "fct_regional_sales_windows"]
BUILD = ["build", "--select", *(f"+{folder}" for folder in FOLDERS)]
BUILD += ["--exclude-resource-type", "test", "unit_test"]


class Steps:
    """Steps in order, some of whose results are asked for by name."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.names: dict[str, int] = {}

    def commit(self, tables: dict[str, list[dict[str, Any]]]) -> None:
        self.steps += [{"commit": table, "rows": rows} for table, rows in tables.items()]

    def add(self, name: str, **step: Any) -> None:
        self.names[name] = len(self.steps)
        self.steps.append(step)

    def of(self, results: list[Any]) -> dict[str, Any]:
        return {name: results[at] for name, at in self.names.items()}


def history() -> Steps:
    """Rounds of records and increments, two of them cut off, then a full refresh."""
    steps, records = Steps(), Records(seed=11)

    steps.commit({"bronze.smoothies__products": catalogue(records, "2025-12-01 08:00:00")})
    steps.commit(records.some(60, DAYS, newest=50))
    steps.commit(
        {
            "bronze.pagila__sales": [
                records.sale(LONELY_SALE, f"{LONELY_DAY} 12:00:00", partition=1)
            ],
            "bronze.smoothies__purchases": [
                records.purchase(
                    LATE_PRODUCT, f"{LONELY_DAY} 12:00:00", transaction_id=LONELY_PURCHASE
                )
            ],
        }
    )
    steps.add("first", dbt=BUILD)
    steps.add("lonely before", export=["marts.fct_rental_sales"])

    # Late and new rows, a product that comes after its purchases, a price that holds from
    # a time gone by, the catalogue once more; and ingest goes on during the build.
    steps.commit(records.some(20, [*DAYS, "2026-01-04"], newest=60))
    steps.commit(
        {
            "bronze.smoothies__products": [
                records.product(LATE_PRODUCT, "2026-01-02 10:00:00"),
                records.product("CS01", "2026-01-02 00:02:00", price="5.49"),
                *catalogue(records, "2026-01-03 09:00:00"),
            ]
        }
    )
    beside = Steps()
    for _ in range(3):
        beside.commit(records.some(5, ["2026-01-02", "2026-01-04"], newest=60))
    steps.add("beside", dbt=RUN, meanwhile=beside.steps)
    steps.add("read", sql="select * from state.read_points")
    steps.add("sums", sql=_SUMS)

    # The only sale of its day moves to another day, customer and partition.
    steps.commit(
        {
            "bronze.pagila__sales": [
                records.sale(
                    LONELY_SALE, "2026-01-03 12:00:00", partition=2, sent_at="2026-01-06 00:00:00"
                )
            ]
        }
    )
    # The run dies after it has reported what it will change, and before it does; a child is
    # built in between, and the day that was left is not forgotten.
    steps.add(
        "broken",
        sql="alter table marts.fct_rental_sales"
        " set tblproperties ('write.format.default' = 'none')",
    )
    steps.add("dies before its rows", dbt=["run", "--select", SOME[0]])
    steps.add("child", dbt=["run", "--select", "fct_regional_sales_windows"])
    steps.add(
        "mended",
        sql="alter table marts.fct_rental_sales unset tblproperties ('write.format.default')",
    )
    steps.commit(
        {"bronze.smoothies__products": [records.withdrawal("CS02", "2026-01-03 00:00:30")]}
    )
    # The next one goes on, and dies after its rows are there, before it has recorded how far
    # it read.
    steps.commit(records.some(15, [DAYS[0], "2026-01-05"], newest=70))
    steps.add("keep", sql="create table state.kept as select * from state.read_points")
    steps.add("goes on", dbt=RUN)
    steps.add("lonely after", export=["marts.fct_rental_sales"])
    steps.add("forget", sql="insert overwrite state.read_points select * from state.kept")
    # Times that are missing, or that no calendar knows.
    steps.commit(
        {
            "bronze.pagila__sales": [
                records.sale(71, None),
                records.sale(72, "0001-01-01 00:03:00"),
                records.sale(73, "9999-12-31 23:59:59"),
                records.sale(5, None, partition=1, sent_at="2026-02-01 00:00:00"),
            ],
            "bronze.smoothies__purchases": [records.purchase("CS01", None)],
        }
    )
    steps.add("timeless", dbt=RUN)
    steps.commit({"bronze.pagila__sales": [records.sale(71, "2026-01-02 23:58:00")]})
    for _ in range(2):
        steps.commit(records.some(10, [*DAYS, "2026-01-06"], newest=80))
    steps.add("last", dbt=RUN)
    steps.add("nothing new", dbt=["run", "--select", *SOME])
    steps.add("increments", export=MARTS)

    steps.add(
        "other windows",
        dbt=["run", "--select", *SOME, "--vars", "{sales_window_minutes: 20}"],
        # What is parsed with other variables is not parsed again for those that follow.
        target="other windows",
    )
    steps.add("unrecorded", sql="delete from state.read_points where model_name like '%sales'")
    steps.add("not recorded", dbt=["run", "--select", "fct_rental_sales"])
    steps.add("full refresh", dbt=[*BUILD, "--full-refresh"])
    steps.add("whole", export=MARTS)
    return steps


_SUMS = """
select
    (select sum(order_count) from marts.fct_regional_sales_windows),
    (select sum(order_count) from marts.fct_country_sales_windows),
    (select 2 * count(*) from marts.fct_rental_sales),
    (select sum(order_count) * 2 from marts.rpt_region_sales),
    (select sum(purchase_count) from marts.fct_product_sales_windows),
    (select 2 * count(*) from marts.fct_purchases_enriched),
    (select 2 * sum(purchase_count) from marts.fct_product_daily_sales),
    (select 2 * count(*) from marts.fct_product_running_totals)
"""


@pytest.fixture(scope="module")
def found(home: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    steps = history()
    return steps.of(do_steps(tmp_path_factory.mktemp("increments"), steps.steps))


@pytest.mark.parametrize("mart", MARTS)
def test_increments_equal_a_full_refresh(found: dict[str, Any], mart: str) -> None:
    built, whole = found["increments"][mart], found["whole"][mart]

    for step in ("last", "full refresh"):
        assert found[step]["success"], found[step]["said"]
    if built != whole:
        kept, made = ({tuple(row) for row in rows} for rows in (built, whole))
        pytest.fail(
            f"{len(built)} rows by increments, {len(whole)} by a full refresh\n"
            f"only by increments: {sorted(kept - made)[:5]}\n"
            f"only by a full refresh: {sorted(made - kept)[:5]}"
        )
    assert built


@pytest.mark.parametrize("step", ["first", "beside", "child", "goes on", "timeless", "nothing new"])
def test_every_increment_succeeds(found: dict[str, Any], step: str) -> None:
    assert found[step]["success"], found[step]["said"]


def test_all_marts_of_a_build_see_one_bronze_though_ingest_goes_on(found: dict[str, Any]) -> None:
    (sums,) = found["sums"]
    reads = {tuple(row[:2]): row[2] for row in found["read"]}

    assert len(set(sums[:4])) == 1, sums
    assert len(set(sums[4:])) == 1, sums
    # What came during the build is not in it, or only whole commits of it.
    assert int(reads["marts.fct_rental_sales", "pagila.sales"]) >= 3


def test_a_sale_that_moves_leaves_its_day_empty(found: dict[str, Any]) -> None:
    def days(export: str) -> list[str]:
        return [
            value[:10]
            for row in found[export]["marts.fct_rental_sales"]
            if row[0] == str(LONELY_SALE)
            for value in row
            if value.endswith("12:00:00")
        ]

    assert LONELY_DAY in days("lonely before")
    assert days("lonely after") == ["2026-01-03"]
    assert not any(
        LONELY_DAY in value
        for mart in FACTS
        if "sales_windows" in mart and "product" not in mart
        for row in found["increments"][mart]
        for value in row
    )


def test_a_run_that_dies_before_its_rows_has_failed(found: dict[str, Any]) -> None:
    assert not found["dies before its rows"]["success"]


def test_changed_windows_stop_the_run_and_name_the_full_refresh(found: dict[str, Any]) -> None:
    done = found["other windows"]

    assert not done["success"]
    assert "was built with length_minutes 10, which is now 20" in done["said"]
    assert "run `dbt run --full-refresh --select fct_regional_sales_windows+`" in done["said"]


def test_a_mart_without_a_read_point_stops_the_run(found: dict[str, Any]) -> None:
    done = found["not recorded"]

    assert not done["success"]
    assert (
        "marts.fct_rental_sales has no read point in state.read_points:"
        " run `dbt run --full-refresh --select fct_rental_sales"
    ) in done["said"]


@pytest.mark.long
def test_days_scattered_over_a_year_equal_a_full_refresh(home: Home, tmp_path: Path) -> None:
    """So many that all days between the first and the last are rewritten."""
    steps, records = Steps(), Records(seed=3)
    windows = [mart for mart in FACTS if "windows" in mart]
    run = ["run", "--select", "dim_products", *(mart[6:] for mart in FACTS)]
    steps.commit({"bronze.smoothies__products": catalogue(records, "2023-12-01 08:00:00")})
    steps.commit(records.some(5, DAYS_BETWEEN, newest=50))
    steps.commit(records.one_of_each(DAYS_BETWEEN, first_id=20_000))
    steps.add("first", dbt=BUILD)
    steps.commit(records.one_of_each(SCATTERED_DAYS, first_id=30_000))
    steps.add("scattered", dbt=run)
    steps.add("increments", export=windows)
    steps.add("full refresh", dbt=[*run, "--full-refresh"])
    steps.add("whole", export=windows)

    found = steps.of(do_steps(tmp_path, steps.steps))

    for step in ("first", "scattered", "full refresh"):
        assert found[step]["success"], found[step]["said"]
    for mart in windows:
        assert len(found["whole"][mart]) >= len(DAYS_BETWEEN + SCATTERED_DAYS)
        assert found["increments"][mart] == found["whole"][mart], mart
