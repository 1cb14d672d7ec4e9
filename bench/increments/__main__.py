"""What one increment of the facts costs, on histories of different lengths.

::

    python -m bench.increments                   # 0.1, 1, 5 and 10 million rows
    python -m bench.increments --quick           # does it work? Says nothing of cost
    python -m bench.increments --write-docs      # and put the results into the docs
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from bench.increments import records
from bench.increments.lake import Lake, Size
from bench.increments.results import LIMIT, RATIO, History, results_of
from bench.increments.worker import prepare
from bench.report.machine import Measurement
from bench.report.results import Results
from bench.run import FOLDER, Benchmark, Folder, Quick, beyond, numbers
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError

SIZES = "100000,1000000,5000000,10000000"
QUICK_SIZES = "20000,100000"
# A JVM that has just started is slow, and one that has built much is not.
WARM_UPS = 3

BENCHMARK = Benchmark(
    "increments",
    "make bench-increments",
    beyond=lambda results: beyond(results.table("increments"), RATIO, LIMIT),
    trial=lambda options: "quick.json" if options["quick"] else None,
)


def increments(
    sizes: Annotated[
        str, typer.Option(help="Rows of the histories: whole thousands, commas between.")
    ] = SIZES,
    rows: Annotated[int, typer.Option(help="New rows of one increment.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Increments of each history.")] = 5,
    folder: Folder = FOLDER,
    quick: Quick = False,
) -> Iterator[Results]:
    """Measure what one increment of all facts costs on histories of different lengths.

    Each history has a lake and a JVM of its own, with the project's Spark settings. The
    histories take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 flat, 1 an increment costs more on a longer history, 2 wrong use.
    """
    warm_ups = WARM_UPS
    if quick:
        sizes, rows, rounds, warm_ups = QUICK_SIZES, 1000, 1, 0
    chosen = sizes_of(sizes, rows)
    measurement = Measurement(BENCHMARK.name)
    histories = measure(chosen, rounds, warm_ups, folder)
    yield results_of(histories, rows, warm_ups, measurement.about())


def measure(sizes: list[Size], rounds: int, warm_ups: int, folder: Path) -> list[History]:
    """Fill and build all lakes, then let them take turns.

    Args:
        sizes: From the smallest.
        rounds: Increments of each that count.
        warm_ups: Increments of each before them.
        folder: For the lakes.
    """
    prepare(folder)
    with ExitStack() as stack:
        lakes = [
            stack.enter_context(Lake(folder / f"increments-{size.history}", size)) for size in sizes
        ]
        histories = [_history(lake) for lake in lakes]
        for number in range(1, warm_ups + rounds + 1):
            # Another one first each time.
            turns = list(zip(lakes, histories, strict=True))
            for lake, history in turns[number % len(turns) :] + turns[: number % len(turns)]:
                increment = lake.grow()
                is_warm = number > warm_ups
                if is_warm:
                    history.increments.append(increment)
                say(
                    f"{lake.size.history:>12,} rows  increment {number}"
                    f"{'' if is_warm else ' (warm-up)'}: {increment.seconds:.1f} s,"
                    f" load {increment.load:.1f}"
                )
        for lake in lakes:
            lake.check()
    return histories


def _history(lake: Lake) -> History:
    fill_seconds = lake.fill()
    say(f"{lake.size.history:>12,} rows  in bronze: {fill_seconds:.1f} s")
    seconds = lake.build()
    say(f"{lake.size.history:>12,} rows  facts built: {seconds:.1f} s")
    return History(lake.size.history, seconds)


def sizes_of(text: str, rows: int) -> list[Size]:
    """The sizes of facts that ``--sizes`` names, the smallest first."""
    sizes = numbers(text, SIZES)
    if rows <= 0 or any(count % 1000 for count in (rows, *sizes)):
        raise ConfigurationError("--sizes and --rows must be whole thousands of rows")
    # What an increment sends again must be there, on the last day.
    if sizes[0] < 2 * rows or rows > records.DAY_ROWS // 10:
        raise ConfigurationError(
            f"--rows {rows}: at most half of the shortest history, and {records.DAY_ROWS // 10}"
        )
    return [Size(history=size, increment=rows) for size in sizes]


if __name__ == "__main__":
    BENCHMARK.run(increments)
