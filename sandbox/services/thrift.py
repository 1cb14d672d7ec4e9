"""Spark's Thrift server on the sandbox's lake, for clients without a Spark of their own."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from sandbox.processes.process import accepts
from sandbox.services.service import Service
from sandbox.settings import Home, load_home


def _command(home: Home) -> list[str]:
    return [sys.executable, "-m", "sandbox.services.thrift", str(home.path)]


def _is_ready(home: Home) -> bool:
    return accepts(home.ports["thrift"])


THRIFT = Service(
    name="thrift",
    title="Spark Thrift server",
    parts=("spark",),
    ports=("thrift",),
    command=_command,
    is_ready=_is_ready,
    is_asked_for=True,
    is_open_only=True,
)


def serve(home: Home) -> None:
    """Open the lake and serve until the process is stopped."""
    os.environ["SPARK_CONF_DIR"] = str(home.spark_conf)
    os.environ.pop("SPARK_HOME", None)
    from pyspark.sql import SparkSession

    from spark_ingest.lake.jvm import Jvm

    hive = "spark.hadoop.hive.server2"
    spark = (
        SparkSession.builder.appName("thrift")
        .config(f"{hive}.thrift.bind.host", "127.0.0.1")
        .config(f"{hive}.thrift.port", str(home.ports["thrift"]))
        .config(f"{hive}.authentication", "NOSASL")
        .getOrCreate()
    )
    # PyHive, which dbt-spark uses, starts each connection with `use default`.
    spark.sql("create namespace if not exists default")
    java = Jvm(spark).packages.org.apache.spark.sql
    server = java.hive.thriftserver.HiveThriftServer2
    server.startWithContext(java.classic.SparkSession.active().sqlContext())
    threading.Event().wait()


if __name__ == "__main__":
    serve(load_home({**os.environ, "SANDBOX_HOME": str(Path(sys.argv[1]))}))
