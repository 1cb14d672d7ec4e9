"""A standalone Spark cluster: a master and two workers of one core and 1 GB each.

It has no settings of the lake, none of its JARs and a Python without packages: like a cluster
that others run, it gets them with each application. Executors reach the sandbox's S3 by the
environment of their worker, as those of AWS do by the role of their instance.

It runs the Spark of ``SPARK_HOME``, or else that of this environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from sandbox.services.cluster.s3 import BUCKET, CREDENTIALS, endpoint
from sandbox.services.service import Service
from sandbox.settings import Home, load_home
from spark_ingest.lake.preflight import java_program, pyspark_folder

WORKERS = 2
_PACKAGE = "org.apache.spark.deploy"


def _command(home: Home) -> list[str]:
    return [sys.executable, "-m", "sandbox.services.cluster.spark", str(home.path)]


def _is_ready(home: Home) -> bool:
    """Whether the master has all workers."""
    url = f"http://127.0.0.1:{home.ports['spark-cluster-ui']}/json/"
    try:
        return bool(httpx2.get(url, timeout=2).json()["aliveworkers"] == WORKERS)
    except (httpx2.HTTPError, ValueError):
        return False


SPARK_CLUSTER = Service(
    name="spark-cluster",
    title="Spark standalone cluster",
    parts=(),
    ports=("spark-cluster", "spark-cluster-ui"),
    command=_command,
    is_ready=_is_ready,
    is_asked_for=True,
    is_open_only=True,
)


def cluster_environment(home: Home) -> dict[str, str]:
    """Environment variables with which a program uses the cluster and a lake on S3.

    Those of the local Spark are left out.
    """
    ours = {name: value for name, value in home.environment().items() if name != "SPARK_CONF_DIR"}
    return {
        **ours,
        "SPARK_MASTER_URL": f"spark://127.0.0.1:{home.ports['spark-cluster']}",
        "LAKE_WAREHOUSE": f"s3://{BUCKET}/warehouse",
        **aws_environment(home),
        # The driver and its web interface too listen there only.
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def aws_environment(home: Home) -> dict[str, str]:
    """Environment variables with which AWS's SDKs use the sandbox's S3 and Glue."""
    return {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint(home)}


def serve(home: Home) -> None:
    """Run master and workers until the process group is stopped, or the master ends.

    A worker that ends is started again, as a cluster manager replaces a lost machine.
    """
    folder = SPARK_CLUSTER.folder(home)
    spark = os.environ.get("SPARK_HOME") or str(pyspark_folder())
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env |= {
        **aws_environment(home),
        "PATH": f"{_python_folder(folder)}{os.pathsep}{os.environ['PATH']}",
        "SPARK_HOME": spark,
        "SPARK_CONF_DIR": str(_empty(folder / "conf")),
        # The web interfaces too listen there only.
        "SPARK_LOCAL_IP": "127.0.0.1",
        # As Spark's own start scripts set it.
        "SPARK_SCALA_VERSION": "2.13",
    }
    host, port = "127.0.0.1", str(home.ports["spark-cluster"])
    java = [str(java_program()), "-Xmx256m", "-cp", f"{spark}/jars/*"]
    ui = str(home.ports["spark-cluster-ui"])
    master = ["master.Master", "--host", host, "--port", port, "--webui-port", ui]
    worker = ["worker.Worker", "--host", host, "--cores", "1", "--memory", "1g"]
    worker += ["--webui-port", "0", "--work-dir", str(folder / "work"), f"spark://{host}:{port}"]

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*java, f"{_PACKAGE}.{name}", *arguments], env=env)

    leader, workers = start(*master), [start(*worker) for _ in range(WORKERS)]
    while leader.poll() is None:
        time.sleep(0.5)
        workers = [start(*worker) if one.poll() is not None else one for one in workers]
    for one in workers:
        one.terminate()
    sys.exit(1)


def _python_folder(folder: Path) -> Path:
    """A folder with the ``python3`` that the virtual environment was made of, without packages."""
    python = _empty(folder / "bin") / "python3"
    python.unlink(missing_ok=True)
    python.symlink_to(Path(sys.executable).resolve())
    return python.parent


def _empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    serve(load_home({**os.environ, "SANDBOX_HOME": str(Path(sys.argv[1]))}))
