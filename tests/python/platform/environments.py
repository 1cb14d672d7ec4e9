"""Virtual environments with other packages than ours, kept for the next run."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from sandbox.install.environment import pins, requirements, with_needed
from sandbox.install.parts import cache_folder
from sandbox.settings import PROJECT

LOCKS = Path(__file__).with_name("locks")
AIRFLOW = PROJECT / "deploy/airflow/requirements.lock"
# Of our own lock what the platform has: no Spark, which runs elsewhere there.
_OF_THE_PLATFORM = ("dbt-core", "dbt-redshift", "dbt-spark")
_NOT_THERE = {"pyspark", "py4j"}
DBT_VERSIONS = ("1.10", "locked", "1.12")


def dbt_lock(version: str) -> str:
    """The packages of one of ``DBT_VERSIONS``, with hashes."""
    if version != "locked":
        return (LOCKS / f"dbt-{version}.lock").read_text()
    ours = pins((PROJECT / "requirements.lock").read_text())
    return requirements(ours, with_needed(ours, _OF_THE_PLATFORM) - _NOT_THERE)


def programs(lock: str) -> Path:
    """The ``bin`` folder of an environment that has what a lock names, and nothing else."""
    key = hashlib.sha256(f"{sys.version}{lock}".encode()).hexdigest()[:10]
    folder = cache_folder() / f"environment-{key}"
    done = folder / "done"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (folder / "requirements.lock").write_text(lock)
        subprocess.run(
            [
                *(folder / "bin/python", "-m", "pip", "install", "--quiet"),
                *("--disable-pip-version-check", "--require-hashes", "--no-deps"),
                *("-r", folder / "requirements.lock"),
            ],
            check=True,
        )
        done.touch()
    return folder / "bin"
