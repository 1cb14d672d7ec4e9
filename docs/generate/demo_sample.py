"""What `make demo` prints: the sample in README.md, and how long it took, from a real run.

    make clean && rm -rf .sandbox
    make demo 2>/dev/null | tee target-demo.log
    python -m docs.generate.demo_sample target-demo.log --cold 262

Run it on a machine that does nothing else. The report's tables are cut to their first row.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from docs.generate.parts import GENERATED, with_parts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "README.md"
SAMPLE, TIMES = "demo_sample", "demo_times"
_STEP = re.compile(r"^\[\d/\d\] .+? +\d+\.\d s ")
_DONE = re.compile(r"^Done in (\d+) s\.", re.MULTILINE)
_RULE = re.compile(r"^  -[- ]+$")
_COLD = re.compile(r"with nothing fetched yet (\d+) s")


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
            break
    return [*lines, "```"]


def times(page: str, log: str, cold: int | None) -> list[str]:
    """The lines that say how long it takes: warm from the run, cold as measured or as before.

    Args:
        page: The page's text.
        log: All that a demo printed on standard output.
        cold: Seconds of `make demo` in a fresh clone with an empty cache, where measured now.
    """
    done = _DONE.search(log)
    if done is None:
        raise SystemExit("the log holds no demo that ended well")
    if cold is None:
        (old,) = (part[3] for part in GENERATED.finditer(page) if part[2] == TIMES)
        before = _COLD.search(old)
        cold = int(before[1]) if before else 0
    return [
        f"On two cores `make demo` took with nothing fetched yet {cold} s, and {done[1]} s when it",
        "was run again.",
    ]


def main() -> None:
    """Rewrite both parts."""
    parser = argparse.ArgumentParser(
        description="Write a demo's output into README.md."
    )
    parser.add_argument("log", type=Path, help="what it printed on standard output")
    parser.add_argument(
        "--cold", type=int, help="seconds in a fresh clone, empty cache"
    )
    given = parser.parse_args()
    page, log = PAGE.read_text(), given.log.read_text()
    parts = {SAMPLE: sample(log), TIMES: times(page, log, given.cold)}
    PAGE.write_text(with_parts(page, parts))


if __name__ == "__main__":
    main()
