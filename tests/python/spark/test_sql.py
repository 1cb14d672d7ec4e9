"""`sandbox sql` writes the result and nothing else, in UTC whatever the machine's zone.

Fails when `sandbox sql` prints anything but the result, or a time outside UTC.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.settings import PROJECT, Home
from sandbox.tour.query import Format, write_rows
from tests.python.conftest import program_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = (
    "select timestamp'2026-01-05 09:00:00' as at, cast(12.5 as decimal(10,2)) as amount,"
    " 'a, \"b\" | ü' as text, cast(null as string) as nothing, X'00ff' as bytes, 7 as n"
)


def sql(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "sandbox"
    return subprocess.run(
        [str(program), "sql", *arguments],
        cwd=PROJECT,
        env={**program_environment(home), "TZ": "America/New_York"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_csv_is_the_result_alone(home: Home) -> None:
    done = sql(home, ROW + ";", "--format", "csv")

    assert done.returncode == 0, done.stderr
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["at", "amount", "text", "nothing", "bytes", "n"],
        ["2026-01-05 09:00:00", "12.50", 'a, "b" | ü', "", "00FF", "7"],
    ]


def test_json_is_one_document_with_every_column(spark: SparkSession) -> None:
    out = io.StringIO()
    write_rows(spark.sql(ROW), Format.JSON, out)

    (row,) = json.loads(out.getvalue())
    assert row["at"] == "2026-01-05T09:00:00.000Z"
    assert (row["amount"], row["text"], row["n"]) == (12.5, 'a, "b" | ü', 7)
    assert row["nothing"] is None


def test_a_table_is_aligned_and_two_columns_may_have_one_name(spark: SparkSession) -> None:
    rows = spark.sql("select * from values ('a', 1, 'x'), ('bcd', 100, 'y') as t(s, n, s)")
    out = io.StringIO()
    write_rows(rows, Format.TABLE, out)

    assert out.getvalue().splitlines() == [
        "s      n  s",
        "---  ---  -",
        "a      1  x",
        "bcd  100  y",
    ]


def test_a_refused_statement_is_one_line_and_exit_2(home: Home) -> None:
    done = sql(home, "select * from nope.x")

    assert (done.returncode, done.stdout) == (2, "")
    reported = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert len(reported) == 1
    assert reported[0].startswith("error: [")


def test_another_spark_home_is_refused_before_spark_starts(home: Home, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "SPARK_HOME", str(tmp_path))
        done = sql(home, "select 1")

    assert done.returncode == 2
    assert f"SPARK_HOME is {tmp_path}" in done.stderr
    assert "unset SPARK_HOME" in done.stderr
