"""The machine on which something was measured."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.report.results import Machine
from sandbox.install import parts
from spark_ingest.lake.preflight import java_program


def this_machine() -> Machine:
    """Processor, memory, system and versions, as they are here."""
    said = subprocess.run(
        [str(java_program()), "-version"], capture_output=True, text=True, check=True
    ).stderr
    return Machine(
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        versions={
            "Python": platform.python_version(),
            "Java": said.partition('"')[2].partition('"')[0],
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
