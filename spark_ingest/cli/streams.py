"""The commands that land streams: plan, create, run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import (
    MaxBatchBytes,
    MaxRate,
    Select,
    UnknownWait,
    app,
    console,
    open_services,
    stop_on_signals,
)
from spark_ingest.errors import ConfigurationError, MillraceError, StreamsFailed
from spark_ingest.units import duration, size_of

if TYPE_CHECKING:
    from spark_ingest.connect.broker import Begin


@app.command()
def plan(context: typer.Context, select: Select = None) -> None:
    """Show topic, table and unread offsets of each stream. Changes nothing.

    The first line shows Spark's version and master, and the catalog of the lake.
    Notes about captured tables follow: limits of their records, missing topics.
    """
    streams, services = open_services(context, select, topics_needed=True, alone=True)
    from spark_ingest.lake.session import session_description
    from spark_ingest.streaming.plan import plan as plan_of

    print(session_description(services.spark))
    table = Table("stream", "topic", "partitions", "table", "next commit", "to read", "would")
    notes: list[str] = []
    refused: list[str] = []
    for stream in streams:
        try:
            planned = plan_of(services, stream)
        except MillraceError as error:
            refused.append(f"{stream.name}: {error}")
            continue
        notes += [f"{stream.name}: {note}" for note in planned.notes]
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
    for note in notes:
        print(note)
    if refused:
        count = f"{len(refused)} of {len(streams)} streams could not start"
        raise StreamsFailed(f"{count}: {'; '.join(refused)}")


@app.command()
def create(context: typer.Context, select: Select = None) -> None:
    """Create missing bronze tables and the tables of ingest itself.

    A captured table without registered schemas gets the columns of its source.
    """
    streams, services = open_services(context, select)
    from spark_ingest.operate import reconciliations
    from spark_ingest.streaming import tables

    created = tables.create_tables(services, streams)
    if reconciliations.create(services.spark):
        created.append(reconciliations.TABLE)
    for table in created:
        print(f"created {table}")
    if not created:
        print("all tables exist")


@app.command("run")
def run_command(
    context: typer.Context,
    select: Select = None,
    once: Annotated[
        bool, typer.Option("--once", help="Land all available records, then exit.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(help="Run until Ctrl-C, with a commit about this often: 10s, 500ms, 1m."),
    ] = None,
    max_batch: Annotated[int, typer.Option(help="Maximum records per batch.", min=1)] = 2_500_000,
    max_batch_bytes: MaxBatchBytes = "1GB",
    max_rate: MaxRate = None,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            help="Start of a table without commits: earliest, latest, or a time (ISO 8601, "
            "default UTC); committed at once. `backfill` lands the records before it.",
        ),
    ] = "earliest",
    unknown_wait: UnknownWait = 5.0,
    writer_id: Annotated[
        str | None,
        typer.Option(
            help="Identity of this writer across restarts on other hosts, for example the name "
            "of its Deployment or the id of its job run: it takes over the tables of an older "
            "writer with the same id at once, not after ten minutes without a commit.",
            envvar="MILLRACE_WRITER_ID",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on this port.", min=1)
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="Address for the metrics.")] = "127.0.0.1",
    cloudwatch: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE",
            help="Print the metrics once a minute as lines of which CloudWatch Logs makes metrics "
            "of this namespace (embedded metric format): for where nothing can scrape them.",
        ),
    ] = None,
) -> None:
    """Land the streams' records in bronze.

    Resumes at the offsets committed in the tables; after a crash the uncommitted
    batch is repeated. Invalid records go to bronze.quarantine with their bytes. A
    captured table without a topic is skipped, with --every until its topic
    exists.
    """
    if once == (every is not None):
        raise ConfigurationError("give either --once or --every, for example --every 10s")
    interval = None if every is None else duration("--every", every).total_seconds()
    first, most_bytes = begin_of(begin), size_of("--max-batch-bytes", max_batch_bytes)
    streams, services = open_services(
        context, select, topics_needed=True, some_topic_needed=once, alone=True
    )
    from spark_ingest.lake.required_settings import check_limits
    from spark_ingest.operate import reconciliations
    from spark_ingest.streaming import run
    from spark_ingest.streaming.progress import open_progress
    from spark_ingest.streaming.tables import prepare

    check_limits(services.spark)
    stopping = stop_on_signals()
    settings = run.RunSettings(
        interval, max_batch, unknown_wait, max_rate, first, most_bytes, writer_id
    )
    progress = open_progress()
    lines: AbstractContextManager[object] = nullcontext()
    if metrics_port is not None or cloudwatch is not None:
        from spark_ingest.streaming.cloudwatch import CloudWatchLines
        from spark_ingest.streaming.metrics import MetricsProgress

        names = [s.name for s in streams if services.broker.topic(s.topic)]
        progress = metrics = MetricsProgress(progress, names, metrics_host, metrics_port)
        if cloudwatch is not None:
            lines = CloudWatchLines(metrics.registry, cloudwatch)
    with progress, lines:
        services = replace(services, progress=progress)
        missing = prepare(services, streams)
        # dbt reads the table even if `reconcile` never ran.
        reconciliations.create(services.spark)
        run.run_streams(services, streams, settings, stopping, missing)


def begin_of(text: str) -> Begin:
    """Parse the start of a stream: ``earliest``, ``latest`` or a time, by default in UTC.

    Raises:
        ConfigurationError: Anything else.
    """
    if text in ("earliest", "latest"):
        return "earliest" if text == "earliest" else "latest"
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"--from {text}: earliest, latest, or a time like 2026-01-31T09:00:00"
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
