"""How fast records come from Kafka into a table: our engine, its limits, its peers.

::

    python -m bench.ingest                                  # all contestants
    python -m bench.ingest --only millrace --only careless --records 2000000 --repeats 2
    python -m bench.ingest --write-docs                     # and put them into the docs
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bench.ingest.contest import Contestant, run
from bench.ingest.contestants import CarelessJob, Millrace, SparkDecode
from bench.ingest.ground import open_sandbox, prepare
from bench.ingest.peers_contest import Connect, PythonConsumer, RawConsumer
from bench.ingest.results import (
    About,
    Contest,
    Results,
    Run,
    load_of,
    read_results,
    summary,
)
from bench.machine import this_machine
from sandbox.settings import PROJECT
from sandbox.ui import err, say, tell
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.preflight import check_spark

RESULTS = PROJECT / "bench/results/ingest.json"
MOST_LOAD = 1.0
# A record on the broker and, at worst, in a table beside it.
_BYTES_EACH = 400
# What a run costs besides its records: a JVM, and counting what landed.
_START_SECONDS = 25.0
_SLOW_RATE = 60_000
_REST_SECONDS = 3.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def ingest(
    records: Annotated[
        int, typer.Option(min=1000, help="Records of the topic.")
    ] = 5_000_000,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs of each contestant; the median counts.")
    ] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Contestants whose name has this in it; may be repeated."),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="For the sandbox, which is removed at the end.")
    ] = PROJECT / "target" / "bench",
    results: Annotated[
        Path | None, typer.Option(help="The file of the results.")
    ] = None,
    run_options: Annotated[
        str, typer.Option(help="More options of `spark-ingest run`, for trials.")
    ] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure though the machine is at work.")
    ] = False,
) -> None:
    """Measure what takes records from Kafka to a table, each in a process of its own.

    The contestants take turns on one topic, with the broker on the same machine.

    Exit codes: 0 measured, 1 a contestant failed, 2 wrong use or a machine at work.
    """
    contestants = chosen(only or [], shlex.split(run_options))
    file = results or (
        RESULTS if not only and not run_options else folder / "ingest-part.json"
    )
    _check(folder, records, anyway)
    load = os.getloadavg()[0]
    begun = time.monotonic()
    rounds = repeats * len(contestants)
    minutes = rounds * (_START_SECONDS + records / _SLOW_RATE) / 60
    say(f"{rounds} runs of {records:,} records: {minutes:.0f} minutes at most")
    with open_sandbox(folder / f"ingest-{os.getpid()}") as home:
        ground = prepare(home, "bench.receipts", records)
        runs: dict[str, list[Run]] = {each.name: [] for each in contestants}
        for number in range(repeats):
            # Another one first each time.
            first = number % len(contestants)
            for contestant in contestants[first:] + contestants[:first]:
                time.sleep(_REST_SECONDS)
                done = run(contestant, ground)
                runs[contestant.name].append(done)
                say(_line(contestant.name, number + 1, done))
        sent = load_of(ground.sent, len(ground.fields), ground.partitions)
    contest = Contest(
        about=About(
            measured_on=datetime.now(UTC).date().isoformat(),
            minutes=round((time.monotonic() - begun) / 60, 1),
            command=shlex.join(["python", "-m", "bench.ingest", *sys.argv[1:]]),
            machine=this_machine(),
            load_before=round(load, 2),
        ),
        load=sent,
        rows=summary(runs, sent),
    )
    before = read_results(file) if file.exists() else Results()
    after = before.model_copy(update={"contest": contest})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(after.model_dump_json(indent=1) + "\n")
    for row in contest.rows:
        tell(
            f"{row.name:30} {row.records_per_second:>12,.0f}/s {row.mb_per_second:>7,.1f} MB/s"
            f" {row.cpu_seconds_per_million:>6.2f} CPU s/M {row.peak_rss_mb:>6,.0f} MB"
            f" {row.times_careless or 0:>5.2f}x  loses {row.loses}"
        )
    say(f"all numbers: {file}")


def chosen(only: list[str], options: list[str]) -> list[Contestant]:
    """The contestants whose names have one of these words in them; all without any.

    Raises:
        ConfigurationError: A word is in no name.
    """
    every: list[Contestant] = [
        RawConsumer(),
        SparkDecode(),
        Millrace(options),
        CarelessJob(),
        Connect(),
        PythonConsumer(),
    ]
    for word in only:
        if not any(word in each.name for each in every):
            names = ", ".join(each.name for each in every)
            raise ConfigurationError(
                f"--only {word}: no contestant; there are: {names}"
            )
    return [
        each for each in every if not only or any(word in each.name for word in only)
    ]


def _check(folder: Path, records: int, anyway: bool) -> None:
    """Refuse what would measure nothing, or fail in the middle."""
    check_spark()
    load = os.getloadavg()[0]
    if load > MOST_LOAD and not anyway:
        raise ConfigurationError(
            f"the machine is at work (load {load:.1f}, {MOST_LOAD:.0f} is the most): wait until"
            " it is quiet, or measure --anyway and do not believe the numbers"
        )
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, records * _BYTES_EACH
    if free < needed:
        raise ConfigurationError(
            f"{free >> 20} MiB are free where {folder} is, {needed >> 20} are needed:"
            " make room, or send fewer --records"
        )


def _line(name: str, number: int, done: Run) -> str:
    return (
        f"  {number}. {name}: {done.records / done.seconds:,.0f} records/s,"
        f" {done.cpu_seconds / done.records * 1e6:.2f} CPU s/M, {done.peak_rss_mb:,.0f} MB,"
        f" load {done.load:.1f}; loses {done.loses}"
    )


def main() -> None:
    """Run the command; an error that a person can mend is one line."""
    # By an exception, so that the contestants and the sandbox end too.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
    try:
        app()
    except MillraceError as error:
        err.print("[bold red]error:[/] ", end="")
        say(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
