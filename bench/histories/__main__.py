"""What one increment of a captured table's history costs, by the rows of the table.

::

    python -m bench.histories                    # 0.1, 1 and 10 million rows
    python -m bench.histories --quick            # does it work? Says nothing of cost
    python -m bench.histories --write-docs       # and put the results into the docs
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bench.histories.lake import COPY_ON_WRITE, MERGE_ON_READ, Lake
from bench.report.histories_page import RESULTS, other_table, table, write_page
from bench.report.histories_results import (
    LIMIT,
    History,
    Results,
    Step,
    is_flat,
    read_results,
)
from bench.report.machine import Measurement
from bench.report.options import OnlyDocs, ResultsFile, WriteDocs
from bench.report.results import write_kept
from sandbox.install import spark_conf
from sandbox.settings import PROJECT
from sandbox.ui import err, say, tell
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_disk, check_spark

SIZES = "100000,1000000,10000000"
QUICK_SIZES = "10000,20000"
KINDS = [COPY_ON_WRITE, MERGE_ON_READ]
# A JVM that has just started is slow.
WARM_UPS = 1
# So few keys are named in the statement; of many all is made anew.
FEW = 100

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class NotFlat(MillraceError):
    """An increment costs more the more rows the table has."""


@app.command()
def histories(
    sizes: Annotated[
        str, typer.Option(help="Rows of the tables: whole thousands, commas between.")
    ] = SIZES,
    changes: Annotated[
        int, typer.Option(help="Updated rows of one increment.")
    ] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Increments of each kind.")] = 3,
    again: Annotated[
        int, typer.Option(help="Changes that are sent twice, and again later.")
    ] = 100_000,
    disturbed: Annotated[
        int,
        typer.Option(
            help="Of the tables up to so many rows the largest is disturbed, too."
        ),
    ] = 1_000_000,
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
    """Measure what an increment of a captured history costs, by the rows of the table.

    Each history has a lake and a JVM of its own, with the project's Spark settings. The
    histories take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 within the limit, 1 an increment of a larger table costs more, 2 wrong
    use.
    """
    if only_docs:
        write_page(read_results(results))
        return
    if quick:
        sizes, changes, rounds, again = QUICK_SIZES, 1000, 1, 3000
        results = folder / "quick-histories.json"
    rows = sizes_of(sizes, changes, again)
    for measured in measure(rows, changes, rounds, again, disturbed, folder):
        write_kept(measured, results)
    for line in [*table(measured), "", *other_table(measured)]:
        tell(line)
    say(f"all numbers: {results}")
    if write_docs:
        write_page(measured)
    if not quick and not is_flat(measured):
        raise NotFlat(
            f"an increment costs more than {LIMIT:g} times as much on a larger table:"
            f" see {results}"
        )


def measure(
    sizes: list[int],
    changes: int,
    rounds: int,
    again: int,
    disturbed: int,
    folder: Path,
) -> Iterator[Results]:
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
    check_spark()
    spark_conf.bring_spark()
    folder.mkdir(parents=True, exist_ok=True)
    check_disk(folder)
    measurement = Measurement("histories")
    found: list[History] = []

    def so_far() -> Results:
        return Results(
            about=measurement.about(),
            changes=changes,
            warm_ups=WARM_UPS,
            kinds=KINDS,
            histories=found,
        )

    with ExitStack() as stack:
        lakes = [stack.enter_context(_lake(folder, rows)) for rows in sizes]
        found.extend(_history(lake) for lake in lakes)
        for kind in KINDS:
            for lake in lakes:
                lake.set_mode(kind)
            warm_ups = WARM_UPS if kind == KINDS[0] else 0
            for number in range(1, warm_ups + rounds + 1):
                for lake, history in zip(lakes, found, strict=True):
                    step = _told(lake, lake.grow(kind, changes))
                    if number > warm_ups:
                        history.steps.append(step)
        for lake in lakes:
            lake.check()
        yield so_far()
        largest = max((rows for rows in sizes if rows <= disturbed), default=None)
        for lake, history in zip(lakes, found, strict=True):
            if lake.rows == largest:
                history.others.extend(_disturbances(lake, again))
                yield so_far()


def _disturbances(lake: Lake, again: int) -> Iterator[Step]:
    """The refresh comes last: it reads all that the others have read."""
    yield _told(lake, lake.grow("changes of a usual increment", again))
    yield _told(lake, lake.send_again("a few of them again", FEW))
    yield _told(lake, lake.grow("changes, each sent twice at once", again, times=2))
    yield _told(lake, lake.send_again("all of them again, later", again))
    lake.check()
    yield _told(lake, lake.truncate_late("a late TRUNCATE"))
    lake.check(is_truncated=True)
    yield _told(lake, lake.refresh("nothing: full refresh"))
    lake.check(is_truncated=True)


@contextmanager
def _lake(folder: Path, rows: int) -> Iterator[Lake]:
    lake = Lake(folder / f"histories-{rows}", rows)
    try:
        yield lake
    except BaseException:
        lake.abandon()
        raise
    lake.close()


def _history(lake: Lake) -> History:
    fill_seconds = lake.fill()
    say(f"{lake.rows:>12,} rows  in bronze: {fill_seconds:.1f} s")
    build = _told(lake, lake.build())
    files, size = lake.layout()
    return History(
        rows=lake.rows,
        fill_seconds=fill_seconds,
        files=files,
        bytes=size,
        build=build,
        steps=[],
        others=[],
    )


def _told(lake: Lake, step: Step) -> Step:
    say(
        f"{lake.rows:>12,} rows  {step.kind}: {step.seconds:.1f} s"
        f" (what is new {step.find_seconds:.1f}, write {step.write_seconds:.1f}),"
        f" load {step.load:.1f}"
    )
    return step


def sizes_of(text: str, changes: int, again: int) -> list[int]:
    """The rows of tables that ``--sizes`` names, the smallest first."""
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError as error:
        raise ConfigurationError(
            f"--sizes {text}: write whole numbers, like {SIZES}"
        ) from error
    if any(rows <= 0 or rows % 1000 or rows % 7919 == 0 for rows in sizes):
        raise ConfigurationError("--sizes must be whole thousands of rows, not of 7919")
    if not (0 < changes <= sizes[0] and FEW <= again <= sizes[0]):
        raise ConfigurationError(
            f"--changes and --again: at most {sizes[0]}, the rows of the smallest table;"
            f" --again at least {FEW}"
        )
    return sizes


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
