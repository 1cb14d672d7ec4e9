"""What happens to a stream under faults? `make fault-table`.

Runs the fault tests and writes what they found into docs/ingest.md. Exits with pytest's code;
each table is written in any case, with what was found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.report.machine import this_machine
from docs.generate.parts import with_parts
from sandbox.settings import PROJECT
from tests.python.fault.harness import RESULTS

PAGE = PROJECT / "docs/ingest.md"
_ON_A_CLUSTER = "tests/python/fault/test_cluster.py"
# By the generated part of the page: what pytest runs for it.
TABLES = {
    "faults": ["tests/python/fault", f"--ignore={_ON_A_CLUSTER}"],
    "faults_cluster": [_ON_A_CLUSTER],
}
_HEAD = ["fault", "what was done", "sent", "lost", "doubled", "how it went on"]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of the table of the results, with machine, date and command."""
    where = this_machine()
    lines = [
        f"`make fault-table`, {datetime.now(UTC):%Y-%m-%d}, on {where.processor},",
        f"{where.cores} cores, {where.memory_gib:.0f} GiB, {where.system}.",
        "Lost and duplicate records are reported",
        "by the sender's own list of what the broker confirmed; `verify` held for each row"
        + ("." if all(row["proved"] for row in rows) else ", except where it says so."),
        "",
        "| " + " | ".join(_HEAD) + " |",
        "|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        went_on = row["went_on"] + ("" if row["proved"] else "; **`verify` fails**")
        numbers = (f"{row[name]:,}" for name in ("sent", "lost", "doubled"))
        cells = [row["fault"], row["done"], *numbers, went_on]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main(arguments: list[str]) -> int:
    """Run the tests, write the tables."""
    parser = argparse.ArgumentParser(prog="make fault-table", description=__doc__)
    parser.add_argument("-k", dest="only", help="as of pytest; the page stays as it is")
    parser.add_argument("--table", choices=TABLES, help="only this table")
    asked = parser.parse_args(arguments)
    code, is_empty = 0, True
    for name in [asked.table] if asked.table else TABLES:
        rows, failed = _run([*TABLES[name], *(["-k", asked.only] if asked.only else [])])
        code, is_empty = code or failed, is_empty and not rows
        if rows and asked.only:
            print("\n".join(table(rows)))
        elif rows:
            PAGE.write_text(with_parts(PAGE.read_text(), {name: table(rows)}))
    return code or int(is_empty)


def _run(tests: list[str]) -> tuple[list[dict[str, Any]], int]:
    """Run some tests; their rows, and pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="millrace-faults-") as folder:
        results = Path(folder) / "results.jsonl"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *tests],
            cwd=PROJECT,
            env={**os.environ, RESULTS: str(results)},
            check=False,
        )
        found = results.read_text().splitlines() if results.exists() else []
    # With -k, one of the tables may have no tests.
    code = 0 if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED else done.returncode
    return [json.loads(line) for line in found], code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
