"""Do both engines hold the same? `make parity`.

Exits 1 when a cell differs, when a mutant slips through, or when dbt fails; 2 when it
cannot be tried at all.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from sandbox.ui import say
from spark_ingest.errors import MillraceError
from tests.python.conftest import make_home
from tests.python.parity import page
from tests.python.parity.mutation import run_mutants, slipped
from tests.python.parity.report import console, print_mutation, print_trial
from tests.python.parity.trial import run_trial


def main(arguments: list[str]) -> int:
    """Try what is asked for, and print what was found."""
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument(
        "--only", choices=["models", "mutants"], help="leave the other out"
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help=f"rewrite {page.FILE.name}, of the mutants",
    )
    asked = parser.parse_args(arguments)
    only = "mutants" if asked.page else asked.only
    is_good, out = True, console()
    with tempfile.TemporaryDirectory(prefix="millrace-parity-") as folder:
        if only != "mutants":
            say("Building all models on both engines, three rounds of one bronze")
            trial = run_trial(make_home(Path(folder) / "models"))
            print_trial(out, trial)
            is_good = not (trial.differs or trial.failures)
        if only != "models":
            say("Building unportable constructs on both engines")
            mutation = run_mutants(make_home(Path(folder) / "mutants"))
            print_mutation(out, mutation)
            is_good = is_good and not slipped(mutation)
            if asked.page:
                page.FILE.write_text(page.text(mutation))
    return 0 if is_good else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # Also where a shell started us in the background, with Ctrl-C ignored.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _interrupt)
    try:
        sys.exit(main(sys.argv[1:]))
    except MillraceError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
