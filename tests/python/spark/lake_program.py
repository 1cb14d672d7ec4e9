"""Do steps on a lake of their own, in one JVM: commit records, type dbt, look at tables.

A program of its own, because the tests' own Spark has another lake open. It reads the
steps as JSON and writes what each gave, in order:

- ``{"commit": table, "rows": [...]}`` gives the commit's number;
- ``{"add": table, "rows": [...]}`` appends rows as they are, and gives how many;
- ``{"sql": statement}`` gives the rows, each a list of texts;
- ``{"dbt": [arguments], "meanwhile": [steps]}`` gives ``{"success", "said"}``; the other
  steps are done beside it; ``"project"`` names another one than that of all, ``"target"``
  another folder for what dbt writes, ``"environment"`` variables that are set for it alone;
- ``{"run": [command]}`` runs a program of this environment, and gives the same;
  ``"environment"`` as for dbt;
- ``{"in order": [steps]}`` gives what each gave;
- ``{"together": [steps]}`` does the first here and the others beside it, and gives the
  same;
- ``{"export": [tables]}`` gives the rows of each by its name, in order;
- ``{"read": [tables]}`` gives of each that is there
  ``{"columns": [[name, type]], "rows", "identity"}``, a null being null; the last stays
  the same until the table is recreated;
- ``{"copy": [file, to]}`` copies a file, if there is one;
- ``{"append": {"file", "text"}}`` adds to a file of the project;
- ``{"replace": {"file", "old", "new"}}`` changes one;
- ``{"as reported by": number}`` types the command that an earlier step was asked to run, with the
  ``"words"`` that follow any command; a list of numbers leads to a step inside others.

With a file descriptor as its third argument it makes no tables, and takes steps from its
standard input instead, one a line; what each gave goes to that descriptor, as a line of JSON.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dbt.cli.main import dbtRunner
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sandbox.processes.programs import path_of
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm
from tests.python.spark.bronze_tables import add, append, create_bronze

Step = dict[str, Any]
# Small queries leave a core idle most of the time.
READERS = 4


def do(spark: SparkSession, project: Path, out: Path, step: Step) -> Any:
    """One step; what it gave."""
    if "commit" in step:
        return append(spark, step["commit"], step["rows"])
    if "add" in step:
        return add(spark, step["add"], step["rows"])
    if "run" in step:
        return run(step["run"], step.get("environment", {}))
    if "in order" in step:
        return [do(spark, project, out, other) for other in step["in order"]]
    if "together" in step:
        return together(spark, project, out, step["together"])
    if "sql" in step:
        return texts(spark, step["sql"])
    if "export" in step:
        return {table: sorted(texts(spark, f"select * from {table}")) for table in step["export"]}
    if "read" in step:
        with ThreadPoolExecutor(READERS) as readers:
            read = readers.map(lambda table: typed(spark, table), step["read"])
            return {table: found for table, found in zip(step["read"], read, strict=True) if found}
    if "copy" in step:
        is_there = Path(step["copy"][0]).exists()
        return is_there and shutil.copyfile(*step["copy"])
    if "append" in step:
        with Path(step["append"]["file"]).open("a") as file:
            return file.write(step["append"]["text"])
    if "replace" in step:
        return replace(**step["replace"])
    beside = threading.Thread(
        target=lambda: [do(spark, project, out, other) for other in step["meanwhile"]]
    )
    if "meanwhile" in step:
        beside.start()
    with patch.dict(os.environ, step.get("environment", {})):
        done = type_dbt(
            Path(step.get("project", project)), out, step["dbt"], step.get("target", "target")
        )
    if "meanwhile" in step:
        beside.join()
    return done


def replace(file: str, old: str, new: str) -> int:
    """Change a text in a file of the project, where it must be."""
    before = Path(file).read_text()
    assert old in before, f"{file} has no {old}"
    return Path(file).write_text(before.replace(old, new))


def together(spark: SparkSession, project: Path, out: Path, steps: list[Step]) -> list[Any]:
    """Do steps at one time; the first in this thread, where dbt has to be."""
    with ThreadPoolExecutor(len(steps)) as others:
        beside = [others.submit(do, spark, project, out, step) for step in steps[1:]]
        return [do(spark, project, out, steps[0]), *(other.result() for other in beside)]


def run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a program to its end; whether it succeeded, and all that it said."""
    done = subprocess.run(
        [path_of(command[0]), *command[1:]],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return {"success": done.returncode == 0, "said": done.stdout}


def typed(spark: SparkSession, table: str) -> dict[str, Any] | None:
    """The columns of a table with their types, and its rows as texts; none: no such table."""
    try:
        found = spark.table(table)
    except AnalysisException:
        return None
    rows = found.selectExpr(*(f"cast({column} as string) as {column}" for column in found.columns))
    return {
        "columns": [list(column) for column in found.dtypes],
        "rows": [list(row) for row in rows.collect()],
        "identity": first_snapshot(spark, table),
    }


def first_snapshot(spark: SparkSession, table: str) -> str:
    """The oldest snapshot from which a table's present one comes; of a view, nothing."""
    jvm = Jvm(spark)
    try:
        found = jvm.iceberg_table(table)
    except JAVA_ERRORS:
        return ""
    snapshots = getattr(jvm.packages, "org.apache.iceberg.util.SnapshotUtil")
    first = snapshots.oldestAncestor(found)
    return str(first and first.snapshotId())


def texts(spark: SparkSession, query: str) -> list[list[str]]:
    """The rows of a query; a null is distinguished from the text by its sign."""
    found = spark.sql(query)
    # Columns may have no names of their own, or the same.
    found = found.toDF(*(f"column_{at}" for at in range(len(found.columns))))
    return [
        ["∅" if value is None else value for value in row]
        for row in found.selectExpr(
            *(f"cast({column} as string)" for column in found.columns)
        ).collect()
    ]


def type_dbt(project: Path, out: Path, arguments: list[str], target: str) -> dict[str, Any]:
    """Run dbt in this JVM; whether it succeeded, and what it said when it did not."""
    done = dbtRunner().invoke(
        [
            # With nothing to retry dbt warns, which is as it should be.
            *(["--warn-error"] if arguments != ["retry"] else []),
            "--no-use-colors",
            "--log-path",
            str(out / "logs"),
            *arguments,
            "--project-dir",
            str(project),
            "--profiles-dir",
            str(project / "profiles"),
            # `dbt debug` writes nothing.
            *(["--target-path", str(out / target)] if arguments != ["debug"] else []),
        ]
    )
    failed = [
        f"{result.node.name}: {result.message}"
        for result in getattr(done.result, "results", None) or []
        if str(result.status) in {"error", "fail", "runtime error"}
    ]
    if done.exception:
        failed.append(str(done.exception))
    return {"success": done.success, "said": "\n".join(failed)}


def as_reported(step: Step, results: list[Any]) -> Step:
    """The step that types what another one's message names."""
    at = step["as reported by"]
    done: Any = results
    for number in at if isinstance(at, list) else [at]:
        done = done[number]
    command = re.search(r"run `dbt ([^`]*)`", done["said"])
    assert command, f"no command in: {done['said']}"
    words = shlex.split(command[1])
    if "run" in step:
        return {"run": [*step["run"], *words, *step["words"]]}
    return {**step, "dbt": [*words, *step["words"]]}


def main(project: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    spark = SparkSession.builder.getOrCreate()
    create_bronze(spark, project)
    steps = json.loads((out / "steps.json").read_text())
    results: list[Any] = []
    for step in steps:
        typed_step = as_reported(step, results) if "as reported by" in step else step
        began = time.monotonic()
        results.append(do(spark, project, out, typed_step))
        # Where the time goes, for whoever reads the log.
        print(f"{time.monotonic() - began:.1f} s: {str(typed_step)[:100]}", flush=True)
    (out / "results.json").write_text(json.dumps(results))


def serve(project: Path, out: Path, answers: int) -> None:
    """Do steps as they come, until there are no more."""
    out.mkdir(parents=True, exist_ok=True)
    spark = SparkSession.builder.getOrCreate()
    with os.fdopen(answers, "w") as reported:
        for line in sys.stdin:
            reported.write(json.dumps(do(spark, project, out, json.loads(line))) + "\n")
            reported.flush()


if __name__ == "__main__":
    own_project, own_out = (Path(argument) for argument in sys.argv[1:3])
    if len(sys.argv) > 3:
        serve(own_project, own_out, int(sys.argv[3]))
    else:
        main(own_project, own_out)
