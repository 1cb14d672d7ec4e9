"""What happens to a stream under faults? `make fault-table`.

Runs the fault tests and writes what they found into docs/ingest.md. Exits with pytest's code;
the table is written in any case, with what was found.
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

from bench.report.machine import this_machine
from docs.generate.parts import with_parts
from sandbox.settings import PROJECT
from tests.python.fault.harness import RESULTS

PAGE = PROJECT / "docs/ingest.md"
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
    """Run the tests, write the table."""
    parser = argparse.ArgumentParser(prog="make fault-table", description=__doc__)
    parser.add_argument("-k", dest="only", help="as of pytest; the page stays as it is")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="millrace-faults-") as folder:
        results = Path(folder) / "results.jsonl"
        only = ["-k", asked.only] if asked.only else []
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "tests/python/fault", *only],
            cwd=PROJECT,
            env={**os.environ, RESULTS: str(results)},
            check=False,
        )
        found = results.read_text().splitlines() if results.exists() else []
    rows = [json.loads(line) for line in found]
    if not rows:
        return done.returncode or 1
    lines = table(rows)
    if asked.only:
        print("\n".join(lines))
    else:
        PAGE.write_text(with_parts(PAGE.read_text(), {"faults": lines}))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
