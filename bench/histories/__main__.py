"""What one increment of a captured table's history costs, by the rows of the table.

::

    python -m bench.histories                    # 0.1, 1 and 10 million rows
    python -m bench.histories --quick            # does it work? Says nothing of cost
    python -m bench.histories --write-docs       # and put the results into the docs
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from bench.histories.lake import Lake
from bench.histories.results import (
    DISTURBED_LIMIT,
    DISTURBED_RATIO,
    KINDS,
    LIMIT,
    RATIO,
    History,
    Step,
    results_of,
)
from bench.increments.worker import prepare
from bench.report.machine import Measurement
from bench.report.results import Results
from bench.run import FOLDER, Benchmark, Folder, Quick, beyond, numbers
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError

SIZES = "100000,1000000,10000000"
QUICK_SIZES = "10000,20000"
# A JVM that has just started is slow.
WARM_UPS = 1
# So few keys are named in the statement; of many all is recreated.
FEW = 100


def beyond_limits(results: Results) -> list[str]:
    """Which increments cost too much, against the smallest table and against a full refresh."""
    usual, disturbed = results.table("histories"), results.table("histories_disturbed")
    return [
        *beyond(usual, RATIO, LIMIT, lambda row: row[1] == KINDS[-1]),
        *beyond(disturbed, DISTURBED_RATIO, DISTURBED_LIMIT),
    ]


BENCHMARK = Benchmark(
    "histories",
    "make bench-histories",
    beyond=beyond_limits,
    trial=lambda options: "quick-histories.json" if options["quick"] else None,
)


def histories(
    sizes: Annotated[
        str, typer.Option(help="Rows of the tables: whole thousands, commas between.")
    ] = SIZES,
    changes: Annotated[int, typer.Option(help="Updated rows of one increment.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Increments of each kind.")] = 3,
    again: Annotated[
        int, typer.Option(help="Changes that are sent twice, and again later.")
    ] = 100_000,
    disturbed: Annotated[
        int, typer.Option(help="Of the tables up to so many rows the largest is disturbed, too.")
    ] = 1_000_000,
    folder: Folder = FOLDER,
    quick: Quick = False,
) -> Iterator[Results]:
    """Measure what an increment of a captured history costs, by the rows of the table.

    Each history has a lake and a JVM of its own, with the project's Spark settings. The
    histories take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 within the limit, 1 an increment of a larger table costs more, 2 wrong
    use.
    """
    if quick:
        sizes, changes, rounds, again = QUICK_SIZES, 1000, 1, 3000
    rows = sizes_of(sizes, changes, again)
    measurement = Measurement(BENCHMARK.name)
    for found in measure(rows, changes, rounds, again, disturbed, folder):
        yield results_of(found, changes, WARM_UPS, measurement.about())


def measure(
    sizes: list[int], changes: int, rounds: int, again: int, disturbed: int, folder: Path
) -> Iterator[list[History]]:
    """Fill and build all lakes, let them take turns, then disturb one.

    Gives what there is before that, and all of it at the end.

    Args:
        sizes: Rows of the tables, from the smallest.
        changes: Updated rows of an increment.
        rounds: Increments of each kind that count.
        again: Changes that are sent twice, and again later.
        disturbed: Of the tables up to so many rows the largest is disturbed.
        folder: For the lakes.
    """
    prepare(folder)
    with ExitStack() as stack:
        lakes = [stack.enter_context(Lake(folder / f"histories-{rows}", rows)) for rows in sizes]
        found = [_history(lake) for lake in lakes]
        for kind in KINDS:
            for lake in lakes:
                lake.set_mode(kind)
            warm_ups = WARM_UPS if kind == KINDS[0] else 0
            for number in range(1, warm_ups + rounds + 1):
                for lake, history in zip(lakes, found, strict=True):
                    step = _reported(lake, lake.grow(kind, changes))
                    if number > warm_ups:
                        history.steps.append(step)
        for lake in lakes:
            lake.check()
        yield found
        largest = max((rows for rows in sizes if rows <= disturbed), default=None)
        for lake, history in zip(lakes, found, strict=True):
            if lake.rows == largest:
                history.others.extend(_disturbances(lake, again))
                yield found


def _disturbances(lake: Lake, again: int) -> Iterator[Step]:
    """The refresh comes last: it reads all that the others have read."""
    yield _reported(lake, lake.grow("changes of a usual increment", again))
    yield _reported(lake, lake.send_again("a few of them again", FEW))
    yield _reported(lake, lake.grow("changes, each sent twice at once", again, times=2))
    yield _reported(lake, lake.send_again("all of them again, later", again))
    lake.check()
    yield _reported(lake, lake.truncate_late("a late TRUNCATE"))
    lake.check(is_truncated=True)
    yield _reported(lake, lake.refresh("nothing: full refresh"))
    lake.check(is_truncated=True)


def _history(lake: Lake) -> History:
    fill_seconds = lake.fill()
    say(f"{lake.rows:>12,} rows  in bronze: {fill_seconds:.1f} s")
    build = _reported(lake, lake.build())
    files, size = lake.layout()
    say(f"{lake.rows:>12,} rows  {files:,} files of current versions: {size:,} bytes")
    return History(lake.rows, build.seconds)


def _reported(lake: Lake, step: Step) -> Step:
    say(
        f"{lake.rows:>12,} rows  {step.kind}: {step.seconds:.1f} s"
        f" (what is new {step.find_seconds:.1f}, write {step.write_seconds:.1f}),"
        f" load {step.load:.1f}"
    )
    return step


def sizes_of(text: str, changes: int, again: int) -> list[int]:
    """The rows of tables that ``--sizes`` names, the smallest first."""
    sizes = numbers(text, SIZES)
    if any(rows <= 0 or rows % 1000 or rows % 7919 == 0 for rows in sizes):
        raise ConfigurationError("--sizes must be whole thousands of rows, not of 7919")
    if not (0 < changes <= sizes[0] and FEW <= again <= sizes[0]):
        raise ConfigurationError(
            f"--changes and --again: at most {sizes[0]}, the rows of the smallest table;"
            f" --again at least {FEW}"
        )
    return sizes


if __name__ == "__main__":
    BENCHMARK.run(histories)
