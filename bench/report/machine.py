"""Metadata of a measurement: machine, load, date and command."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.report.results import About, Machine
from sandbox.install import parts
from spark_ingest.lake.preflight import java_program


class Measurement:
    """A measurement that starts now.

    Args:
        program: The module, without ``bench.``.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._load = os.getloadavg()[0]
        self._begun = time.monotonic()

    def about(self) -> About:
        """The metadata at the end of the measurement."""
        return About(
            measured_on=datetime.now(UTC).date().isoformat(),
            minutes=round((time.monotonic() - self._begun) / 60, 1),
            command=shlex.join(["python", "-m", f"bench.{self._program}", *sys.argv[1:]]),
            machine=this_machine(),
            load_before=round(self._load, 2),
        )


def this_machine() -> Machine:
    """Processor, memory, operating system and versions of this machine."""
    output = subprocess.run(
        [str(java_program()), "-version"], capture_output=True, text=True, check=True
    ).stderr
    return Machine(
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        versions={
            "Python": platform.python_version(),
            "Java": output.partition('"')[2].partition('"')[0],
            "Spark": version("pyspark"),
            "Iceberg": _iceberg_version(),
            "dbt": version("dbt-core"),
        },
    )


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _iceberg_version() -> str:
    (jar,) = parts.component_folder("spark").glob("iceberg-spark-runtime-*.jar")
    return jar.stem.rpartition("-")[2]
