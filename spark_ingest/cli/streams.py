"""The commands that land streams and prove it: plan, create, run, verify."""

from __future__ import annotations

import re
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_services
from spark_ingest.errors import ConfigurationError, MillraceError

if TYPE_CHECKING:
    from spark_ingest.ledger import PartitionProof

_EVERY = re.compile(r"^(\d+(?:\.\d+)?)\s*(ms|s|m|h)$")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


@app.command()
def plan(context: typer.Context, select: Select = None) -> None:
    """Show each stream: its topic, its table, what is new. Changes nothing."""
    streams, services = open_services(context, select, topics_needed=True)
    from spark_ingest import run

    table = Table(
        "stream", "topic", "partitions", "table", "next commit", "to read", "would"
    )
    for stream in streams:
        planned = run.plan(services, stream)
        table.add_row(
            stream.name,
            stream.topic,
            str(planned.partitions),
            stream.table,
            str(planned.next_commit),
            f"{planned.to_read:,}",
            planned.would,
        )
    console().print(table)


@app.command()
def create(context: typer.Context, select: Select = None) -> None:
    """Make the bronze tables, quarantine and the commit log where they are missing."""
    streams, services = open_services(context, select)
    from spark_ingest import run

    made = run.create_tables(services, streams)
    for table in made:
        print(f"made {table}")
    if not made:
        print("all tables are there already")


@app.command("run")
def run_command(
    context: typer.Context,
    select: Select = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take what the topics hold now, then end.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            help="Go on until Ctrl-C, a batch at most this often: 10s, 500ms, 1m."
        ),
    ] = None,
    max_batch: Annotated[
        int, typer.Option(help="Most records in a batch.", min=1)
    ] = 250_000,
    unknown_wait: Annotated[
        float,
        typer.Option(
            help="Seconds to keep asking for a schema id that the registry does not know, "
            "before its records go to quarantine.",
            min=0,
        ),
    ] = 5.0,
) -> None:
    """Land the streams' records in bronze.

    Begins where the tables stand; a crash at any moment repeats the batch that was not
    committed. Records that bronze cannot take go to bronze.quarantine with their bytes.
    """
    if once == (every is not None):
        raise ConfigurationError(
            "give either --once or --every, for example --every 10s"
        )
    interval = None if every is None else _interval(every)
    streams, services = open_services(context, select, topics_needed=True)
    from spark_ingest import run
    from spark_ingest.progress import open_progress

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    settings = run.RunSettings(interval, max_batch, unknown_wait)
    with open_progress() as progress:
        services = run.with_progress(services, progress)
        run.create_tables(services, streams)
        run.run_streams(services, streams, settings, stopping)


@app.command()
def verify(context: typer.Context, select: Select = None) -> None:
    """Prove from the tables and the broker that every record is there exactly once.

    For each topic and partition: every offset between the first and the last committed one
    is in bronze or in quarantine once, or holds no record on the broker. Exits 1 and names
    the offsets where that does not hold. A stream that never ran is reported, not failed.
    """
    streams, services = open_services(context, select)
    from spark_ingest import bronze, ledger
    from spark_ingest.lease import own_snapshots
    from spark_ingest.session import Jvm

    proofs: list[PartitionProof] = []
    idle: list[str] = []
    for stream in streams:
        if not bronze.exists(services.spark, stream.table):
            idle.append(stream.name)
            continue
        topic = services.broker.topic(stream.topic)
        if topic is None:
            if own_snapshots(Jvm(services.spark), stream.table):
                raise MillraceError(
                    f"topic {stream.topic} is gone and {stream.table} was filled from it: "
                    "nothing can be proved; is it the right cluster in profiles/ingest.yml?"
                )
            idle.append(stream.name)
            continue
        found = ledger.prove(services.spark, services.broker, stream, topic)
        proofs += found
        if not found:
            idle.append(stream.name)
    _print_proofs(proofs)
    for name in idle:
        print(f"{name}: never started, nothing to verify")
    broken = [proof for proof in proofs if not proof.holds]
    for proof in broken:
        _print_broken(proof)
    if broken:
        raise typer.Exit(1)
    total = sum(proof.bronze + proof.quarantined for proof in proofs)
    if proofs:
        print(f"every one of {total:,} records is in exactly one table, exactly once")


def _interval(text: str) -> str:
    match = _EVERY.match(text.strip())
    if match is None:
        raise ConfigurationError(
            f"--every {text}: a number and ms, s, m or h, for example 10s"
        )
    return f"{match[1]} {_UNITS[match[2]]}"


def _print_proofs(proofs: list[PartitionProof]) -> None:
    table = Table(
        "stream", "partition", "first", "end", "bronze", "quarantine", "empty", "missing",
        "doubled", "lag",
    )  # fmt: skip
    for proof in proofs:
        missing = sum(end - first for first, end in proof.missing)
        numbers = (
            proof.partition, proof.first, proof.end, proof.bronze, proof.quarantined, proof.empty,
            missing, proof.doubled, proof.lag,
        )  # fmt: skip
        table.add_row(proof.stream, *(f"{number:,}" for number in numbers))
    for column in table.columns[1:]:
        column.justify = "right"
    if proofs:
        console().print(table)


def _print_broken(proof: PartitionProof) -> None:
    from spark_ingest.ledger import gaps_text

    place = f"{proof.stream} partition {proof.partition}"
    if proof.missing:
        print(f"{place}: missing offsets {gaps_text(proof.missing)}", file=sys.stderr)
    if proof.doubled:
        print(
            f"{place}: {proof.doubled} offsets are there more than once",
            file=sys.stderr,
        )
    if proof.uncommitted:
        print(
            f"{place}: {proof.uncommitted} rows that no commit covers", file=sys.stderr
        )
