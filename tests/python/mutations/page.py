"""The table in docs/testing.md of what becomes of each mechanism's test without it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docs.generate.parts import GENERATED, with_parts
from sandbox.settings import PROJECT
from tests.python.mutations.planting import Mechanism
from tests.python.mutations.trial import Outcome, Trial

PAGE = PROJECT / "docs/testing.md"
PART = "mechanisms"
_HEAD = ["what holds", "taken out of", "the test that fails then", "seconds"]
_LAST = re.compile(r"\| ([^|]+) \|$")


def with_trials(page: str, known: Sequence[Mechanism], trials: Sequence[Trial]) -> str:
    """The page with new rows for what was tried, and the others as they are.

    Args:
        page: Its text.
        known: All mechanisms, in order.
        trials: What was tried now.
    """
    reported = {trial.mechanism.why: _reported(trial) for trial in trials}
    before = rows(page)
    lines = [f"| {' | '.join(_HEAD)} |", "|---|---|---|---:|"]
    for mechanism in known:
        row = _row(mechanism)
        lines.append(f"{row} {reported.get(mechanism.why, before.get(row, 'not run'))} |")
    return with_parts(page, {PART: lines})


def rows(page: str) -> dict[str, str]:
    """The page's rows: what the last column says, by what stands before it."""
    (part,) = (part[3] for part in GENERATED.finditer(page) if part[2] == PART)
    found = {}
    for line in part.splitlines()[2:]:
        if last := _LAST.search(line):
            found[line[: last.start() + 1]] = last[1]
    return found


def _row(mechanism: Mechanism) -> str:
    file, _, test = mechanism.test.partition("::")
    # The page is in docs/, too.
    return f"| [{mechanism.why}]({mechanism.doc}) | `{mechanism.file}` | `{test}` in `{file}` |"


def _reported(trial: Trial) -> str:
    if trial.outcome is Outcome.CAUGHT:
        return f"{trial.seconds:.0f}"
    return f"**{trial.outcome}**"
