"""What one increment of the facts costs, on histories of different lengths.

::

    python -m bench.increments                   # 0.1, 1, 5 and 10 million rows
    python -m bench.increments --quick           # does it work? Says nothing of cost
    python -m bench.increments --write-docs      # and put the results into the docs
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bench.increments import records
from bench.increments.lake import Lake, Size
from bench.report.increments_page import RESULTS, table, write_page
from bench.report.increments_results import History, Results, is_flat, read_results
from bench.report.machine import this_machine
from bench.report.options import OnlyDocs, ResultsFile, WriteDocs
from bench.report.results import write_kept
from sandbox.install import spark_conf
from sandbox.settings import PROJECT
from sandbox.ui import err, say, tell
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_disk, check_spark

SIZES = "100000,1000000,5000000,10000000"
QUICK_SIZES = "20000,100000"
# A JVM that has just started is slow, and one that has built much is not.
WARM_UPS = 3

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class NotFlat(MillraceError):
    """An increment costs more on a longer history."""


@app.command()
def increments(
    sizes: Annotated[
        str,
        typer.Option(help="Rows of the histories: whole thousands, commas between."),
    ] = SIZES,
    rows: Annotated[int, typer.Option(help="New rows of one increment.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Increments of each history.")] = 5,
    folder: Annotated[
        Path,
        typer.Option(help="Where the lakes are made, and removed when all went well."),
    ] = PROJECT / "target" / "bench",
    results: ResultsFile = RESULTS,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Small and once: shows that it works, no more."),
    ] = False,
    write_docs: WriteDocs = False,
    only_docs: OnlyDocs = False,
) -> None:
    """Measure what one increment of all facts costs on histories of different lengths.

    Each history has a lake and a JVM of its own, with the project's Spark settings. The
    histories take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 flat, 1 an increment costs more on a longer history, 2 wrong use.
    """
    if only_docs:
        write_page(read_results(results))
        return
    warm_ups = WARM_UPS
    if quick:
        sizes, rows, rounds, warm_ups = QUICK_SIZES, 1000, 1, 0
        results = folder / "quick.json"
    measured = measure(sizes_of(sizes, rows), rounds, warm_ups, folder)
    write_kept(measured, results)
    for line in table(measured):
        tell(line)
    say(f"all numbers: {results}")
    if write_docs:
        write_page(measured)
    if not quick and not is_flat(measured):
        raise NotFlat(f"an increment costs more on a longer history: see {results}")


def measure(sizes: list[Size], rounds: int, warm_ups: int, folder: Path) -> Results:
    """Fill and build all lakes, then let them take turns.

    Args:
        sizes: From the smallest.
        rounds: Increments of each that count.
        warm_ups: Increments of each before them.
        folder: For the lakes.
    """
    check_spark()
    spark_conf.bring_spark()
    folder.mkdir(parents=True, exist_ok=True)
    check_disk(folder)
    begun = time.monotonic()
    with ExitStack() as stack:
        lakes = [stack.enter_context(_lake(folder, size)) for size in sizes]
        histories = [_history(lake) for lake in lakes]
        for number in range(1, warm_ups + rounds + 1):
            # Another one first each time.
            turns = list(zip(lakes, histories, strict=True))
            for lake, history in (
                turns[number % len(turns) :] + turns[: number % len(turns)]
            ):
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
    return Results(
        measured_on=datetime.now(UTC).date().isoformat(),
        minutes=round((time.monotonic() - begun) / 60, 1),
        machine=this_machine(),
        increment_rows=sizes[0].increment,
        day_rows=records.DAY_ROWS,
        warm_ups=warm_ups,
        histories=histories,
    )


@contextmanager
def _lake(folder: Path, size: Size) -> Iterator[Lake]:
    lake = Lake(folder / f"increments-{size.history}", size)
    try:
        yield lake
    except BaseException:
        lake.abandon()
        raise
    lake.close()


def _history(lake: Lake) -> History:
    fill_seconds = lake.fill()
    say(f"{lake.size.history:>12,} rows  in bronze: {fill_seconds:.1f} s")
    build = lake.build()
    say(f"{lake.size.history:>12,} rows  facts built: {build.seconds:.1f} s")
    return History(
        rows=lake.size.history, fill_seconds=fill_seconds, build=build, increments=[]
    )


def sizes_of(text: str, rows: int) -> list[Size]:
    """The sizes of facts that ``--sizes`` names, the smallest first."""
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError as error:
        raise ConfigurationError(
            f"--sizes {text}: write whole numbers, like {SIZES}"
        ) from error
    if rows <= 0 or any(count % 1000 for count in (rows, *sizes)):
        raise ConfigurationError("--sizes and --rows must be whole thousands of rows")
    # What an increment sends again must be there, on the last day.
    if sizes[0] < 2 * rows or rows > records.DAY_ROWS // 10:
        raise ConfigurationError(
            f"--rows {rows}: at most half of the shortest history, and"
            f" {records.DAY_ROWS // 10}"
        )
    return [Size(history=size, increment=rows) for size in sizes]


def main() -> None:
    """Run the command; an error that a person can mend is one line."""
    # By an exception, so that the lakes' processes end too.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
    try:
        app()
    except MillraceError as error:
        err.print("[bold red]error:[/] ", end="")
        say(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
