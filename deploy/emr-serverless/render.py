"""Fill in one of the JSON files beside this program: ``${NAME}`` is a variable of the environment.

    python deploy/emr-serverless/render.py job.json
    python deploy/emr-serverless/render.py job.json maintain

A command of spark-ingest after ``job.json`` makes a batch job of it. ``job.json`` also gets the
properties of ``target/cluster/spark.conf``, with its JARs and its archive at
``s3://$BUCKET/millrace``: write that first, by ``make cluster-archive SPARK=4.0``. A variable that
is empty leaves its property, or its statement of the policy, out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

HERE = Path(__file__).resolve().parent
CLUSTER = HERE.parents[1] / "target" / "cluster"
# Values that are paths in the folder of the application.
_PATHS = ("spark.jars", "spark.archives")
# The archive has native packages of this version; EMR's default may be another one.
_PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"


def rendered(
    name: str, cluster: Path, environment: Mapping[str, str], command: Sequence[str] = ()
) -> Any:
    """A file with its variables filled in, as an object of JSON.

    ``command`` replaces that of the job; empty for the one that it has, which streams.

    Raises:
        SystemExit: A variable is missing, or the folder of the application; says which.
    """
    text = Template((HERE / name).read_text())
    missing = sorted(set(text.get_identifiers()) - set(environment))
    if missing:
        sys.exit(f"error: {name} needs the variables {', '.join(missing)}: export them")
    found = json.loads(text.substitute(environment))
    if "Statement" in found:
        found["Statement"] = [each for each in found["Statement"] if each.get("Resource") != [""]]
    if name == "job.json":
        (defaults,) = found["configurationOverrides"]["applicationConfiguration"]
        own = {k: v for k, v in defaults["properties"].items() if v not in {"", "EMR.secret@"}}
        folder = f"s3://{environment['BUCKET']}/millrace"
        defaults["properties"] = of_cluster(cluster / "spark.conf", folder) | own
        if command:
            arguments = found["jobDriver"]["sparkSubmit"]["entryPointArguments"]
            arguments[arguments.index("run") :] = command
            found |= {"mode": "BATCH", "retryPolicy": {"maxAttempts": 1}}
    return found


def of_cluster(file: Path, folder: str) -> dict[str, str]:
    """The properties of the application in ``folder``, an address of S3.

    Raises:
        SystemExit: There is no such file.
    """
    if not file.exists():
        sys.exit(f"error: {file} is missing: `make cluster-archive SPARK=4.0` writes it")
    found = dict(line.split(" ", 1) for line in file.read_text().splitlines())
    for key in _PATHS:
        found[key] = ",".join(f"{folder}/{path}" for path in found[key].split(","))
    found["spark.emr-serverless.driverEnv.PYSPARK_PYTHON"] = _PYTHON
    found["spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON"] = _PYTHON
    found["spark.executorEnv.PYSPARK_PYTHON"] = _PYTHON
    return found


if __name__ == "__main__":
    _, *words = sys.argv
    if not words or not (HERE / words[0]).is_file() or (words[1:] and words[0] != "job.json"):
        sys.exit(__doc__)
    json.dump(rendered(words[0], CLUSTER, os.environ, words[1:]), sys.stdout, indent=2)
    sys.stdout.write("\n")
