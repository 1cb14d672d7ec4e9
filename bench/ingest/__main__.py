"""How fast records come from Kafka into a table: our engine, its limits, its peers.

::

    python -m bench.ingest                                  # all contestants
    python -m bench.ingest --only millrace --only careless --records 2000000 --repeats 2
    python -m bench.ingest --scaling                        # or --latency, or --quiet
    python -m bench.ingest --only-docs                      # write the docs from the results
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.ingest.contest import Contestant, run
from bench.ingest.contestants import CarelessJob, Millrace, SparkDecode
from bench.ingest.ground import open_sandbox, prepare
from bench.ingest.latency import RATE
from bench.ingest.latency import measure as measure_latency
from bench.ingest.peers_contest import Connect, PythonConsumer, RawConsumer
from bench.ingest.quiet import measure as measure_quiet
from bench.ingest.scaling import MOST_TIMES
from bench.ingest.scaling import measure as measure_scaling
from bench.report.ingest_page import table, write_page
from bench.report.ingest_results import (
    Contest,
    Latencies,
    Load,
    QuietStreams,
    Results,
    Run,
    Scaling,
    load_of,
    read_results,
    summary,
)
from bench.report.machine import Measurement
from bench.report.options import OnlyDocs, WriteDocs
from bench.report.results import write_kept
from sandbox.settings import PROJECT, Home
from sandbox.ui import err, say, tell
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_spark

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
    scaling: Annotated[
        bool, typer.Option("--scaling", help="Instead: partitions, records, executors.")
    ] = False,
    latency: Annotated[
        bool, typer.Option("--latency", help="Instead: end-to-end latency.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Instead: many streams, few records.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(help="How long --latency and --quiet look at each case.")
    ] = 60.0,
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
    write_docs: WriteDocs = False,
    only_docs: OnlyDocs = False,
) -> None:
    """Measure what takes records from Kafka to a table, each in a process of its own.

    The contestants take turns on one topic, with the broker on the same machine.

    Exit codes: 0 measured, 1 a contestant failed, 2 wrong use or a machine at work.
    """
    if scaling + latency + quiet > 1:
        raise ConfigurationError("give one of --scaling, --latency and --quiet")
    contestants = chosen(only or [], shlex.split(run_options))
    is_trial = bool(only or run_options)
    file = results or (folder / "ingest-part.json" if is_trial else RESULTS)
    if only_docs:
        write_page(read_results(file))
        return
    _check(folder, records * MOST_TIMES if scaling else records, anyway)
    measurement = Measurement("ingest")
    measured = read_results(file) if file.exists() else Results()
    with open_sandbox(folder / f"ingest-{os.getpid()}") as home:
        update: dict[str, Any] = {}
        if scaling:
            cases = list(measure_scaling(home, records))
            update["scaling"] = Scaling(about=measurement.about(), cases=cases)
        elif latency:
            waits = list(measure_latency(home, seconds))
            update["latency"] = Latencies(
                about=measurement.about(), records_per_second=RATE, rows=waits
            )
        elif quiet:
            rows = list(measure_quiet(home, seconds))
            update["quiet"] = QuietStreams(about=measurement.about(), rows=rows)
        else:
            runs, sent = compete(home, contestants, records, repeats)
            update["contest"] = Contest(
                about=measurement.about(), load=sent, rows=summary(runs, sent)
            )
    measured = measured.model_copy(update=update)
    write_kept(measured, file)
    for part in update.values():
        for line in table(part):
            tell(line)
    say(f"all numbers: {file}")
    if write_docs:
        write_page(measured)


def compete(
    home: Home, contestants: list[Contestant], records: int, repeats: int
) -> tuple[dict[str, list[Run]], Load]:
    """Let all contestants take one topic, in turns.

    Args:
        home: A sandbox that runs.
        contestants: Who takes part.
        records: Of the topic.
        repeats: Runs of each.

    Returns:
        The runs by contestant, and what was sent.
    """
    rounds = repeats * len(contestants)
    minutes = ceil(rounds * (_START_SECONDS + records / _SLOW_RATE) / 60)
    say(f"{rounds} runs of {records:,} records: {minutes} minutes at most")
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
    return runs, load_of(ground.sent, len(ground.fields), ground.partitions)


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
