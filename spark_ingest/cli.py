"""`spark-ingest`: land Kafka topics in bronze Iceberg tables, and prove that nothing is lost."""

from __future__ import annotations

import re
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from spark_ingest.config import load_connections
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.sources import Stream, fresh_manifest, read_streams, select_streams

if TYPE_CHECKING:
    from spark_ingest.ledger import PartitionProof
    from spark_ingest.progress import Progress
    from spark_ingest.run import Services

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""
    Land Kafka topics in bronze Iceberg tables, each record exactly once.

    The streams are the dbt sources that have [bold]config.meta.ingest[/bold]. SELECT is
    [bold]source[/bold], [bold]source.table[/bold] or [bold]tag:x[/bold]; none selects all.

    spark-ingest plan                    what would be made and read\n
    spark-ingest run --once              take what is there, then end\n
    spark-ingest run pagila --every 10s  go on until Ctrl-C\n
    spark-ingest verify                  prove that nothing is lost or doubled
    """,
)

Select = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECT]...", help="source, source.table or tag:x; all when absent."
    ),
]

_EVERY = re.compile(r"^(\d+(?:\.\d+)?)\s*(ms|s|m|h)$")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


@dataclass(frozen=True)
class _Options:
    """What every command takes, before its name."""

    project: Path
    manifest: Path | None
    profile: Path
    target: str | None


@app.callback()
def options(
    context: typer.Context,
    project_dir: Annotated[
        Path, typer.Option(help="Folder with dbt_project.yml.", file_okay=False)
    ] = Path(),
    manifest: Annotated[
        Path | None,
        typer.Option(help="A dbt manifest to read instead of parsing the project."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Connections; profiles/ingest.yml of the project."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Target of the connections file.")
    ] = None,
) -> None:
    """Common options."""
    project = _project(project_dir)
    context.obj = _Options(
        project, manifest, profile or project / "profiles" / "ingest.yml", target
    )


@app.command()
def plan(context: typer.Context, select: Select = None) -> None:
    """Show each stream: its topic, its table, what is new. Changes nothing."""
    streams, services = _open(context, select, topics_needed=True)
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
    _console().print(table)


@app.command()
def create(context: typer.Context, select: Select = None) -> None:
    """Make the bronze tables, quarantine and the commit log where they are missing."""
    streams, services = _open(context, select)
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
    streams, services = _open(context, select, topics_needed=True)
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
    streams, services = _open(context, select)
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


def main() -> None:
    """Run the command; a mistake that a person can mend is one line on standard error."""
    try:
        app()
    except MillraceError as error:
        print(f"spark-ingest: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        from spark_ingest.session import JAVA_ERRORS, java_reason

        if not isinstance(error, (*JAVA_ERRORS, OSError)):
            raise
        print(f"spark-ingest: {java_reason(error)}", file=sys.stderr)
        sys.exit(1)


def _project(folder: Path) -> Path:
    """The project: the folder, or the nearest one above that has a dbt_project.yml."""
    here = folder.resolve()
    return next(
        (
            place
            for place in (here, *here.parents)
            if (place / "dbt_project.yml").exists()
        ),
        here,
    )


def _open(
    context: typer.Context, select: list[str] | None, topics_needed: bool = False
) -> tuple[list[Stream], Services]:
    """Read the configuration, ask the services, then start Spark: what is cheap comes first."""
    from spark_ingest.kafka import Broker
    from spark_ingest.preflight import check_spark
    from spark_ingest.progress import LineProgress
    from spark_ingest.registry import SchemaRegistry
    from spark_ingest.run import Services
    from spark_ingest.session import open_session

    chosen: _Options = context.obj
    connections = load_connections(chosen.profile, chosen.target)
    manifest = chosen.manifest or fresh_manifest(chosen.project)
    streams = select_streams(read_streams(manifest), select or [])
    check_spark()
    broker, registry = Broker(connections), SchemaRegistry(connections)
    for stream in streams:
        if topics_needed:
            broker.existing_topic(stream.topic, stream.name)
        else:
            broker.topic(stream.topic)
        registry.subject_schemas(f"{stream.topic}-value")
    progress: Progress = LineProgress()
    return streams, Services(open_session(), connections, broker, registry, progress)


def _interval(text: str) -> str:
    match = _EVERY.match(text.strip())
    if match is None:
        raise ConfigurationError(
            f"--every {text}: a number and ms, s, m or h, for example 10s"
        )
    return f"{match[1]} {_UNITS[match[2]]}"


def _console() -> Console:
    """Standard output, wide enough for a table where it is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=140)


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
        _console().print(table)


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


if __name__ == "__main__":
    main()
