"""The commands that publish marts to Kafka: publish, publish plan, publish verify."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperGroup

from spark_ingest.cli.app import Options, app, console, open_lake, stop_on_signals
from spark_ingest.connect.profile import load_connections
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable, StreamsFailed
from spark_ingest.sources import fresh_manifest
from spark_ingest.units import duration

if TYPE_CHECKING:
    from spark_ingest.publish.publications import Publication
    from spark_ingest.publish.publisher import Published, Publisher
    from spark_ingest.streaming.services import Services

_RUN = "run"


class _RunsByDefault(TyperGroup):
    """`publish sales --once` is `publish run sales --once`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and "--help" not in args:
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


commands = typer.Typer(
    cls=_RunsByDefault,
    no_args_is_help=True,
    help="""
    Send changed rows of marts to Kafka topics as Avro, in exactly-once transactions.

    A publication is a dbt exposure that has [bold]config.meta.publish[/bold], with one
    mart in [bold]depends_on[/bold]. SELECT is the exposure's name or the topic; none
    selects all. Only changes since the last publication are sent; a deleted row
    is sent as a tombstone. Consumers with isolation.level read_committed see each
    publication completely or not at all.

    spark-ingest publish --once             send the changes, then exit
    spark-ingest publish sales --every 5s   send changes until Ctrl-C
    spark-ingest publish plan               what would be sent
    spark-ingest publish verify             compare topics with their marts
    """,
)
app.add_typer(commands, name="publish")

Select = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SELECT]...", help="Exposure or topic; default: all."),
]


@commands.command(_RUN)
def run(
    context: typer.Context,
    select: Select = None,
    once: Annotated[bool, typer.Option("--once", help="Send the changes, then exit.")] = False,
    every: Annotated[
        str | None, typer.Option(help="Repeat until Ctrl-C at this interval: 5s.")
    ] = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Take over a topic with records of other producers: keys that are not in the "
            "mart are deleted.",
        ),
    ] = False,
) -> None:
    """Send the changes of the marts since the last publication.

    Creates missing topics and registers schemas. A topic has one publisher: a
    second one fences the first, which then stops. After a stop at any point the
    next run resumes at the last commit.

    Exit codes: 0 done, 1 a row cannot be published or another publisher took
    over, 2 wrong usage or a service is unavailable.
    """
    if once == (every is not None):
        raise ConfigurationError("give either --once or --every")
    pause = duration("--every", every).total_seconds() if every else None
    publications, services = _open(context, select)
    from spark_ingest.publish.publisher import Publisher

    stopping = stop_on_signals() if pause is not None else threading.Event()
    failed: list[str] = []
    with ExitStack() as stack:
        running = [
            stack.enter_context(Publisher(services, publication, adopt))
            for publication in publications
        ]
        while running and not stopping.is_set():
            began = time.monotonic()
            for publisher in list(running):
                if stopping.is_set():
                    break
                if not _round(publisher, every):
                    failed.append(publisher.publication.name)
                    running.remove(publisher)
            if pause is None:
                break
            stopping.wait(max(pause - (time.monotonic() - began), 0))
    if failed:
        raise StreamsFailed(f"not published: {', '.join(failed)}")


@commands.command("plan")
def plan(context: typer.Context, select: Select = None) -> None:
    """Show what would be sent to each topic. Changes nothing."""
    publications, services = _open(context, select)
    from spark_ingest.publish.check import planned

    shown = Table("exposure", "mart", "topic", "rows", "deletes")
    for publication in publications:
        ops = planned(services, publication)
        deletes = ops.pop("d", 0)
        counts = (f"{ops.total():,}", f"{deletes:,}")
        shown.add_row(publication.name, publication.mart, publication.topic, *counts)
    for column in shown.columns[-2:]:
        column.justify = "right"
    console().print(shown)


@commands.command("verify")
def verify_command(context: typer.Context, select: Select = None) -> None:
    """Compare each topic with its mart at the last published snapshot.

    Reads the whole topic. Exits 1 if a key is missing, has different values, or
    is not in the mart.
    """
    publications, services = _open(context, select)
    from spark_ingest.publish.check import verify

    shown = Table("exposure", "topic", "rows", "missing", "different", "extra")
    for column in shown.columns[2:]:
        column.justify = "right"
    broken = False
    for publication in publications:
        found = verify(services, publication)
        if found is None:
            print(f"{publication.name}: never published, nothing to verify")
            continue
        broken = broken or not found.holds
        counts = (found.rows, found.missing, found.different, found.extra)
        shown.add_row(publication.name, publication.topic, *(f"{count:,}" for count in counts))
    console().print(shown)
    if broken:
        raise typer.Exit(1)


def _open(context: typer.Context, select: list[str] | None) -> tuple[list[Publication], Services]:
    """Read the publications, check topics and subjects, then start Spark, which is slow."""
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.publish.publications import read_publications, select_publications
    from spark_ingest.streaming.progress import LineProgress
    from spark_ingest.streaming.services import Services

    chosen: Options = context.obj
    connections = load_connections(chosen.profile, chosen.target)
    manifest = chosen.manifest or fresh_manifest(chosen.project)
    publications = select_publications(read_publications(manifest), select or [])
    broker, registry = Broker(connections), SchemaRegistry(connections)
    for publication in publications:
        broker.topic(publication.topic)
        for subject in publication.subjects:
            registry.subject_schemas(subject)
    _, spark = open_lake(context, None)
    services = Services(spark, connections, broker, registry, LineProgress())
    return publications, services


def _round(publisher: Publisher, every: str | None) -> bool:
    """Publish once; False if it failed with an error that a retry does not resolve."""
    from spark_ingest.lake import jvm_watch
    from spark_ingest.lake.jvm import JAVA_ERRORS, java_reason

    try:
        done = publisher.publish()
    except (ServiceUnavailable, *JAVA_ERRORS, OSError) as error:
        if every is None or jvm_watch.has_exited(error):
            raise
        reason = error if isinstance(error, MillraceError) else java_reason(error)
        print(f"{_now()} {reason}: retry in {every}", file=sys.stderr, flush=True)
        return True
    except MillraceError as error:
        print(f"spark-ingest: {error}", file=sys.stderr, flush=True)
        return False
    if done is not None or every is None:
        _print_done(publisher.publication, done)
    return True


def _print_done(publication: Publication, done: Published | None) -> None:
    head = f"{_now()} {publication.name} → {publication.topic}:"
    if done is None:
        print(f"{head} no changes", flush=True)
        return
    several = f" in {done.transactions} transactions" if done.transactions > 1 else ""
    print(
        f"{head} {done.rows:,} rows, {done.deletes:,} deletes{several}, {done.seconds:.1f} s",
        flush=True,
    )


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
