"""Do steps on a lake of their own, in one JVM: commit records, type dbt, look at tables.

A program of its own, because the tests' own Spark has another lake open. It reads the
steps as JSON and writes what each gave, in order:

- ``{"commit": table, "rows": [...]}`` gives the commit's number;
- ``{"sql": statement}`` gives the rows, each a list of texts;
- ``{"dbt": [arguments], "meanwhile": [steps]}`` gives ``{"success", "said"}``; the other
  steps are done beside it;
- ``{"export": [tables]}`` gives the rows of each by its name, in order;
- ``{"append": {"file", "text"}}`` adds to a file of the project.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.python.spark.bronze_tables import append, create_bronze

Step = dict[str, Any]


def do(spark: SparkSession, project: Path, out: Path, step: Step) -> Any:
    """One step; what it gave."""
    if "commit" in step:
        return append(spark, step["commit"], step["rows"])
    if "sql" in step:
        return texts(spark, step["sql"])
    if "export" in step:
        return {
            table: sorted(texts(spark, f"select * from {table}"))
            for table in step["export"]
        }
    if "append" in step:
        with Path(step["append"]["file"]).open("a") as file:
            return file.write(step["append"]["text"])
    beside = threading.Thread(
        target=lambda: [do(spark, project, out, other) for other in step["meanwhile"]]
    )
    if "meanwhile" in step:
        beside.start()
    done = type_dbt(project, out, step["dbt"])
    if "meanwhile" in step:
        beside.join()
    return done


def texts(spark: SparkSession, query: str) -> list[list[str]]:
    """The rows of a query; a null is told from the text by its sign."""
    found = spark.sql(query)
    # Columns may have no names of their own, or the same.
    found = found.toDF(*(f"column_{at}" for at in range(len(found.columns))))
    return [
        ["∅" if value is None else value for value in row]
        for row in found.selectExpr(
            *(f"cast({column} as string)" for column in found.columns)
        ).collect()
    ]


def type_dbt(project: Path, out: Path, arguments: list[str]) -> dict[str, Any]:
    """Run dbt in this JVM; whether it succeeded, and what it said when it did not."""
    done = dbtRunner().invoke(
        [
            "--warn-error",
            "--no-use-colors",
            "--log-path",
            str(out / "logs"),
            *arguments,
            "--project-dir",
            str(project),
            "--profiles-dir",
            str(project / "profiles"),
            "--target-path",
            str(out / "target"),
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


def main(project: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    spark = SparkSession.builder.getOrCreate()
    create_bronze(spark, project)
    steps = json.loads((out / "steps.json").read_text())
    results = [do(spark, project, out, step) for step in steps]
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
