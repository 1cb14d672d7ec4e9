"""Does a test fail when a mechanism of the code is taken out?

    python -m tests.python.mutations -k lease

Each mechanism of `mutations.yml` is taken out of a copy of the checkout by a small edit, and
the one test that is there for it is run. It must fail by an assertion ("caught"). One that
passes ("survived") proves nothing: strengthen it. "broken" is a test that could not do its
work, or that fails with the mechanism in place, too. The rows of what was run are written into
docs/testing.md. The exit code is 1 where a mechanism was not caught.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from sandbox import ui
from tests.python.mutations.page import PAGE, with_trials
from tests.python.mutations.planting import Mechanism, mechanisms
from tests.python.mutations.trial import Copy, Outcome, Said, Trial
from tests.python.project_copy import copy_checkout

_STYLES = {Outcome.CAUGHT: "green", Outcome.SURVIVED: "red", Outcome.BROKEN: "yellow"}


def parser() -> argparse.ArgumentParser:
    """What can be typed."""
    made = argparse.ArgumentParser(
        prog="python -m tests.python.mutations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "-k",
        dest="words",
        metavar="WORD",
        action="append",
        default=[],
        help="only those with the word in sentence, file or test; may be repeated",
    )
    made.add_argument("--list", action="store_true", help="say which there are, and run nothing")
    made.add_argument(
        "--page",
        action="store_true",
        help="bring the page's rows up to date with mutations.yml, and run nothing: those of "
        "changed entries say `not run`",
    )
    return made


def chosen(known: Sequence[Mechanism], words: Sequence[str]) -> list[Mechanism]:
    """Those that have one of the words; all where there are none."""

    def has(one: Mechanism, word: str) -> bool:
        return word.lower() in f"{one.why} {one.file} {one.node_id}".lower()

    return [one for one in known if not words or any(has(one, word) for word in words)]


def sound(copy: Copy, wanted: Sequence[Mechanism]) -> dict[str, Said]:
    """What each test says with every mechanism in place; one pytest for each file."""
    files: dict[str, set[str]] = defaultdict(set)
    for mechanism in wanted:
        files[mechanism.node_id.partition("::")[0]].add(mechanism.node_id)
    found: dict[str, Said] = {}
    for file, tests in files.items():
        ui.say(f"{file}: {len(tests)} as they are …")
        found.update(copy.run(sorted(tests)))
    return found


def tried(copy: Copy, wanted: Sequence[Mechanism]) -> Iterator[Trial]:
    """Each mechanism taken out, with progress."""
    as_it_is = sound(copy, wanted)
    for number, mechanism in enumerate(wanted, start=1):
        said = as_it_is.get(mechanism.node_id, Said("error", "pytest did not come to it"))
        if said.outcome == "passed":
            trial = copy.trial(mechanism)
        else:
            why = f"{said.outcome} with the mechanism in place: {said.why}"
            trial = Trial(mechanism, Outcome.BROKEN, why, 0)
        ui.say(
            f"{number}/{len(wanted)} {mechanism.why}: {trial.outcome} "
            f"({trial.seconds:.0f} s) {trial.why}",
            _STYLES[trial.outcome],
        )
        yield trial


def table(trials: Sequence[Trial]) -> Table:
    """What became of them, for people."""
    made = Table("mechanism", "test")
    made.columns[1].overflow = "fold"
    made.add_column("")
    made.add_column("what it said")
    made.add_column("seconds", justify="right")
    for trial in trials:
        made.add_row(
            trial.mechanism.why,
            trial.mechanism.test,
            f"[{_STYLES[trial.outcome]}]{trial.outcome}[/]",
            trial.why[:80].replace("[", r"\["),
            f"{trial.seconds:.0f}",
        )
    return made


def main(arguments: list[str]) -> int:
    """Try the chosen mechanisms; 1 where one was not caught, 2 where there is none."""
    asked, known = parser().parse_args(arguments), mechanisms()
    wanted = chosen(known, asked.words)
    if not wanted:
        ui.say("No mechanism has such a word; `--list` says which there are.")
        return 2
    if asked.list:
        for one in wanted:
            ui.echo(one.why)
        return 0
    if asked.page:
        PAGE.write_text(with_trials(PAGE.read_text(), known, []))
        return 0
    # As Ctrl-C does: what runs is ended before this program is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="millrace-mechanisms-") as made:
        folder = Path(made).resolve()
        copy = Copy(copy_checkout(folder / "checkout"), folder)
        try:
            trials.extend(tried(copy, wanted))
        except KeyboardInterrupt:
            ui.say("Interrupted; nothing was left running.")
            return 130
    ui.out.print(table(trials))
    PAGE.write_text(with_trials(PAGE.read_text(), known, trials))
    return int(any(trial.outcome is not Outcome.CAUGHT for trial in trials))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
