"""How long the tests take: the table in docs/testing.md, from a run of `.ci/run`.

    .ci/run && python -m docs.generate.times

`.ci/run` writes ``target/ci-times.csv``, a row for each command. Run it on a machine that does
nothing else. Commands that it does not run keep their rows.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from docs.generate.parts import GENERATED, markdown, with_parts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/testing.md"
MEASURED = ROOT / "target/ci-times.csv"
PART = "times"
_ROW = re.compile(r"^\| `?(?P<command>[^`|]+?)`? \| (?P<seconds>[\d,]+) \|$", re.MULTILINE)


def table(page: str, measured: Mapping[str, int]) -> list[str]:
    """The lines of the table: what was measured now, and what the page has of the others.

    Args:
        page: The page's text.
        measured: Seconds by command.
    """
    (old,) = (part[3] for part in GENERATED.finditer(page) if part[2] == PART)
    seconds: dict[str, int] = {
        row["command"]: int(row["seconds"].replace(",", "")) for row in _ROW.finditer(old)
    }
    seconds.update(measured)
    rows = [[f"`{command}`", f"{taken:,}"] for command, taken in seconds.items()]
    return markdown(["command", "seconds"], rows)


def main() -> None:
    """Rewrite the table."""
    with MEASURED.open(newline="") as file:
        measured = {row["command"]: int(row["seconds"]) for row in csv.DictReader(file)}
    page = PAGE.read_text()
    PAGE.write_text(with_parts(page, {PART: table(page, measured)}))


if __name__ == "__main__":
    main()
