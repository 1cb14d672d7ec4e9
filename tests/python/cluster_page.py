"""The page of a Spark cluster, docs/your-cluster.md, typed in a copy of the checkout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from sandbox.settings import PROJECT
from tests.python.conftest import program_environment
from tests.python.typed_pages import blocks
from tests.python.walks import BIN, Newcomer

PAGE = PROJECT / "docs" / "your-cluster.md"
SECONDS = 1200
# In a copy there is no make.
MADE = ("make cluster-archive\n", "python -m sandbox.install.cluster_folder")
# What the page asks to wait for.
ANSWERS = 'until (echo > "/dev/tcp/127.0.0.1/$SPARK_THRIFT_PORT") 2>/dev/null; do sleep 1; done'
THRIFT_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def typed(
    newcomer: Newcomer, *texts: str, spark: Path, during: Callable[[Path], None] | None = None
) -> str:
    """Type blocks in one shell, each in the checkout; what they printed. All they started ends.

    ``spark`` is the home of the cluster's Spark. ``during`` is called with the file that they print
    to.
    """
    environment = program_environment(newcomer.home)
    log = newcomer.checkout.parent / "typed.log"
    lines = "\n".join(f'cd "$CHECKOUT"\n{text}' for text in texts)
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-euxo", "pipefail", "-c", lines],
            cwd=newcomer.checkout,
            env={
                **environment,
                "PATH": os.pathsep.join([f"{spark}/bin", str(BIN), environment["PATH"]]),
                "CHECKOUT": str(newcomer.checkout),
                # The sandbox and dbt are those of the copy.
                "PYTHONPATH": str(newcomer.checkout),
                "SPARK_HOME": str(spark),
                # The driver has the packages of the archive alone.
                "PYSPARK_DRIVER_PYTHON": str(Path(sys.executable).resolve()),
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        if during is not None:
            during(log)
        code = shell.wait(SECONDS)
    finally:
        # The shell may have ended, and left nothing.
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
    printed = log.read_text()
    assert code == 0, printed[-6000:]
    return printed


def page(version: str = "4.1") -> list[str]:
    """The page's blocks of commands, for a cluster with that version of Spark."""
    texts = [block.text for block in blocks(PAGE.read_text()) if block.kind == "sh"]
    assert sum(MADE[0] in text for text in texts) == 1
    return [text.replace(MADE[0], f"{MADE[1]} --spark {version}\n") for text in texts]


def follow_the_page(newcomer: Newcomer, version: str, spark: Path) -> None:
    """Type the whole page on a cluster with that Spark, ``version`` as in 4.1.1."""
    *before, dbt = page(version.rpartition(".")[0])

    printed = typed(newcomer, *before, ANSWERS, dbt, spark=spark)

    assert f"Spark {version}, master spark://127.0.0.1:" in printed
    assert "catalog lake: glue" in printed
    assert "all 20,000 records are in exactly one table, exactly once" in printed
    # The workers have pyarrow by the archive.
    assert "falling back" not in printed
    assert "ERROR=0 SKIP=0" in printed


def lose_an_executor(newcomer: Newcomer, spark: Path) -> None:
    """Ingest more records while an executor is killed, and let the marts grow."""
    services, views, *_, thrift, dbt = page()
    submit = "spark-submit --properties-file spark.conf spark-ingest.py"
    run = f"""
        cd target/cluster
        {submit} run pagila --once --max-batch 2000
        {submit} verify pagila
    """

    printed = typed(
        newcomer, *(services, views, run, thrift, ANSWERS, dbt), spark=spark,
        during=kill_an_executor,
    )  # fmt: skip

    assert "all 40,000 records are in exactly one table, exactly once" in printed
    assert "ERROR=0 SKIP=0" in printed


def lose_the_thrift_server(newcomer: Newcomer, spark: Path) -> None:
    """Ingest more records, kill the Thrift server in a build, and build again with a new one."""
    services, views, *_, thrift, dbt = page()
    run = """
        cd target/cluster
        spark-submit --properties-file spark.conf spark-ingest.py run pagila --once
    """
    # The shell ends at the first command that fails, but for this one.
    lost = f'if {dbt.strip()}; then echo "nothing was lost"; exit 1; fi'

    printed = typed(
        newcomer, services, views, run, thrift, ANSWERS, lost, thrift, ANSWERS, dbt, spark=spark,
        during=kill_the_thrift_server,
    )  # fmt: skip

    before, _, after = printed.rpartition("Running with dbt=")
    assert "nothing was lost" not in before.splitlines()
    assert "ERROR=0 SKIP=0" in after


def kill_the_thrift_server(log: Path) -> None:
    """Kill the Thrift server when the build has begun with a table."""
    _wait_for_text(log, "START sql incremental model")
    (server,) = _processes(log, THRIFT_SERVER)
    server.kill()


def kill_an_executor(log: Path) -> None:
    """Kill one of the executors when the first batch is there."""
    _wait_for_text(log, '"event": "batch"')
    executors = _processes(log, EXECUTOR)
    assert len(executors) > 1
    executors[0].kill()


def _wait_for_text(log: Path, text: str) -> None:
    deadline = time.monotonic() + SECONDS
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()[-6000:]
        time.sleep(0.1)


def _processes(log: Path, word: str) -> list[psutil.Process]:
    """The processes in the newcomer's folder that have a word in their command line."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if word in (process.info["cmdline"] or []) and str(log.parent) in str(process.cwd())
    ]
