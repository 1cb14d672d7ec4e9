"""What `make demo` prints: the sample in README.md, and how long it took, from a real run.

    export XDG_CACHE_HOME=$(mktemp -d)
    time make demo 2>/dev/null | tee demo.log
    time make demo
    python -m docs.generate.demo_sample demo.log --cold 197 --again 86

Run them in a fresh clone, on a machine that does nothing else. The report's tables are cut to
their first row.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from docs.generate.parts import with_parts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "README.md"
SAMPLE, TIMES = "demo_sample", "demo_times"
_STEP = re.compile(r"^\[\d/\d\] .+? +\d+\.\d s ")
_DONE = re.compile(r"^Done in (\d+) s\.", re.MULTILINE)
_RULE = re.compile(r"^  -[- ]+$")


def sample(log: str) -> list[str]:
    """The lines of the sample: steps, accounts and tables, these with one row each.

    Args:
        log: All that a demo printed on standard output.
    """
    lines = ["```", "$ make demo"]
    begun = False
    rows: int | None = None
    for line in log.splitlines():
        begun = begun or bool(_STEP.match(line))
        if not begun:
            continue
        if rows is not None and line.startswith("  "):
            rows += 1
            if rows > 1:
                if rows == 2:
                    lines.append("  …")
                continue
        else:
            rows = None
        lines.append(line)
        if _RULE.match(line):
            rows = 0
        if _DONE.match(line):
            return [*lines, "```"]
    raise SystemExit("the log holds no demo that ended well")


def times(cold: int, again: int) -> list[str]:
    """The lines that say how long it takes, in seconds of the whole command.

    Args:
        cold: In a fresh clone with an empty cache.
        again: When it was run once more.
    """
    return [
        f"On two cores `make demo` took {cold} s with nothing fetched yet, and {again} s when",
        "it was run again, which adds as many events.",
    ]


def main() -> None:
    """Rewrite both parts."""
    parser = argparse.ArgumentParser(description="Write a demo's output into README.md.")
    parser.add_argument("log", type=Path, help="what the first run printed")
    parser.add_argument("--cold", type=int, required=True, help="seconds that it took")
    parser.add_argument("--again", type=int, required=True, help="seconds of a second")
    given = parser.parse_args()
    parts = {SAMPLE: sample(given.log.read_text()), TIMES: times(given.cold, given.again)}
    PAGE.write_text(with_parts(PAGE.read_text(), parts))


if __name__ == "__main__":
    main()
