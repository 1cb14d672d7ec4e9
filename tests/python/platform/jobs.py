"""The jobs of the dbt platform, run as it runs them.

A clone of the repository, a ``profiles.yml`` with one target that has the job's name for it, the
job's variables, and its steps as they are written. Not as there: what the platform does besides
(a generated profile for each run, artifacts kept, pull requests watched) is done here by hand.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_jobs_as_code.loader.load import load_job_configuration
from dbt_jobs_as_code.schemas.job import JobDefinition
from pyhive import hive

from sandbox.services import stack as services
from sandbox.settings import PROJECT, Home
from tests.python.conftest import PROGRAM_SECONDS
from tests.python.parity.relations import connected
from tests.python.programs import ran
from tests.python.project_copy import copy_checkout

FOLDER = PROJECT / "deploy/dbt-platform"
# What the platform calls the schema of the second pull request that its job 1 builds.
PULL_REQUEST = "dbt_cloud_pr_1_2"
# dbt of this environment, without what the environment has of the project: no plugin of ours.
_PLAIN = (
    "import sys;"
    f"sys.path[:] = [at for at in sys.path if at not in ('', {str(PROJECT)!r})];"
    "from dbt.cli.main import cli; cli()"
)
THIS_DBT = (sys.executable, "-c", _PLAIN)
_ADDRESSES: dict[str, dict[str, Any]] = {
    "spark": {"type": "spark", "method": "thrift", "user": "dbt", "auth": "NOSASL"},
    "redshift": {
        "type": "redshift",
        "user": "millrace",
        "password": "millrace",
        "dbname": "dev",
        "sslmode": "disable",
    },
}
_SERVICES = {"spark": "thrift", "redshift": "redshift"}
ENGINES = tuple(_SERVICES)
# What the pull request changes, and what it thereby builds.
_CHANGED = "models/intermediate/rentals/int_rentals__sales_enriched.sql"
_OLD, _NEW = "        city,\n", "        upper(city) as city,\n"
_MARTS = (
    "fct_rental_sales",
    "fct_regional_sales_windows",
    "fct_country_sales_windows",
    "rpt_region_sales",
    "rpt_country_sales",
)
_NO_TESTS = ("--exclude-resource-type", "test", "unit_test")


def jobs() -> dict[str, JobDefinition]:
    """What `dbt-jobs-as-code` reads of our files."""
    files = [str(FOLDER / "jobs.yml")], [str(FOLDER / "vars.yml")]
    return dict(load_job_configuration(*files).jobs)


def steps_of(job: JobDefinition) -> list[str]:
    """The steps of a job, with the one that the platform adds."""
    return [*job.execute_steps, *(["dbt docs generate"] if job.generate_docs else [])]


@dataclass(frozen=True)
class Platform:
    """One engine, and a clone of the project.

    Attributes:
        engine: ``spark`` or ``redshift``.
        home: The sandbox whose services it is.
        clone: The repository as the platform has it.
        dbt: The program.
        has_catalog: Whether its docs have columns: dbt-spark 1.10 finds none of Iceberg's.
    """

    engine: str
    home: Home
    clone: Path
    dbt: tuple[str, ...]
    has_catalog: bool

    def run(self, name: str, schema: str, *, clone: Path | None = None, state: str = "") -> None:
        """Run a job's steps, each of which must succeed without a warning.

        Args:
            name: Of the job.
            schema: Of its environment, or of a pull request.
            clone: The commit that it runs on, where that is another.
            state: The folder with the manifest that it defers to.
        """
        job = jobs()[name]
        variables = {at.name: at.value or "" for at in job.custom_environment_variables}
        deferring = ["--defer", "--state", state] if state else []
        target = job.settings.target_name
        for step in steps_of(job):
            words = [*shlex.split(step)[1:], *deferring]
            self.type(words, schema, target, clone, variables)

    def type(
        self,
        words: Sequence[str],
        schema: str,
        target: str,
        clone: Path | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        """Type one command of dbt, which must succeed without a warning."""
        profiles = self.home.path / f"profiles-{schema}"
        profiles.mkdir(exist_ok=True)
        output = {
            **_ADDRESSES[self.engine],
            "host": "127.0.0.1",
            "port": self.home.ports[_SERVICES[self.engine]],
            "schema": schema,
            "threads": 4,
        }
        (profiles / "profiles.yml").write_text(
            yaml.safe_dump({"millrace": {"target": target, "outputs": {target: output}}})
        )
        ours = ("DBT_", "SANDBOX_", "SPARK_", "PYTHONPATH")
        done = ran(
            [*self.dbt, *words],
            cwd=clone or self.clone,
            env={
                **{key: of for key, of in os.environ.items() if not key.startswith(ours)},
                "DBT_PROFILES_DIR": str(profiles),
                "DBT_WARN_ERROR": "true",
                "DBT_USE_COLORS": "false",
                "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
                **(variables or {}),
            },
            timeout=PROGRAM_SECONDS,
        )
        if done.returncode != 0:
            pytest.fail(f"dbt {' '.join(words)}\n{done.stdout[-8000:]}{done.stderr}")

    def rows(self, relation: str) -> list[str]:
        """The rows of a relation as texts, in order."""
        with self._connection() as connection:
            cursor = connection.cursor()
            cursor.execute(f"select * from {relation}")
            return sorted(map(str, cursor.fetchall()))

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        port = self.home.ports[_SERVICES[self.engine]]
        if self.engine == "redshift":
            with connected(port) as standin:
                yield standin
            return
        server = hive.connect("127.0.0.1", port, auth="NOSASL")
        try:
            yield server
        finally:
            server.close()


@contextmanager
def platform(
    engine: str, home: Home, clone: Path, dbt: tuple[str, ...], has_catalog: bool
) -> Iterator[Platform]:
    """An engine of the sandbox, up, with the lake readable; down at the end."""
    copy_checkout(clone)
    try:
        services.up(home, [_SERVICES[engine]])
        made = Platform(engine, home, clone, dbt, has_catalog)
        if engine == "redshift":
            made.type(["run-operation", "create_external_schema"], "analytics", "prod")
        yield made
    finally:
        services.down(home)


def check_production(at: Platform) -> None:
    """Run the job that is left of production's, and look at what all have made."""
    at.run("weekly", "analytics")

    catalog = json.loads((at.clone / "target/catalog.json").read_text())
    assert ("model.millrace.fct_rental_sales" in catalog["nodes"]) == at.has_catalog
    assert all(at.rows(f"marts.{mart}") for mart in _MARTS)


def pull_request(at: Platform, folder: Path) -> None:
    """Push a change twice, and compare with production and with a full build of the change."""
    state = folder / "state"
    state.mkdir()
    shutil.copyfile(at.clone / "target/manifest.json", state / "manifest.json")
    made = shutil.ignore_patterns("target", "logs")
    clone = shutil.copytree(at.clone, folder / "clone", symlinks=True, ignore=made)
    before = (clone / _CHANGED).read_text()
    assert _OLD in before
    (clone / _CHANGED).write_text(before.replace(_OLD, _NEW))
    production = {mart: at.rows(f"marts.{mart}") for mart in _MARTS}

    for _push in range(2):
        at.run("pull_request", PULL_REQUEST, clone=clone, state=str(state))

    results = json.loads((clone / "target/run_results.json").read_text())
    built = {node["unique_id"].split(".")[2] for node in results["results"]}
    assert {"int_rentals__sales_enriched", *_MARTS} <= built
    assert not any(name.startswith(("stg_", "fct_product")) for name in built)
    words = ["build", "--select", *(f"+{mart}" for mart in _MARTS), *_NO_TESTS]
    at.type(words, "whole", "default", clone)
    whole = {mart: at.rows(f"whole_marts.{mart}") for mart in _MARTS}
    ours = {mart: at.rows(f"{PULL_REQUEST}_marts.{mart}") for mart in _MARTS}
    assert ours == whole
    assert whole[_MARTS[0]] != production[_MARTS[0]]
    assert {mart: at.rows(f"marts.{mart}") for mart in _MARTS} == production
