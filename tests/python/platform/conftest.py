"""Production as the platform's jobs have built it, on an engine and with a version of dbt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import bring_spark, make_home
from tests.python.platform.environments import dbt_lock, programs
from tests.python.platform.jobs import THIS_DBT, Platform, platform
from tests.python.spark.bronze_tables import tables_made
from tests.python.spark.lake_steps import at_work, run_steps
from tests.python.world.records import DAYS, Records


@pytest.fixture(scope="module")
def at_platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """Production, built by its jobs from a bronze that grew between them.

    The parameter is an engine and one of ``DBT_VERSIONS``, or none for dbt of this environment.
    """
    engine, version = request.param
    folder = tmp_path_factory.mktemp(engine)
    home = make_home(folder / "sand box")
    dbt = (str(programs(dbt_lock(version)) / "dbt"),) if version else THIS_DBT
    bring_spark(home)
    sales = Records(seed=3)

    def more() -> dict[str, Any]:
        rows = sales.some(5, DAYS, newest=9)["bronze.pagila__sales"]
        return {"commit": "bronze.pagila__sales", "rows": rows}

    # Nothing came to most of the streams yet, and none of them is stale.
    run_steps(home, [more(), {"sql": tables_made(PROJECT)}])
    # The other versions have dbt-spark 1.10.3.
    has_catalog = engine == "redshift" or version in (None, "locked")
    with platform(engine, home, folder / "clone", dbt, has_catalog) as made:
        made.run("nightly", "analytics")
        with at_work(home) as do:
            do(more())
        made.run("hourly", "analytics")
        yield made
