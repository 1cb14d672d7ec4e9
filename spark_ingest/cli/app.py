"""The Typer app: common options, and the services that the commands open."""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_ingest.connect.profile import load_connections
from spark_ingest.connect.remote_file import local_file
from spark_ingest.errors import ConfigurationError, NothingCaptured
from spark_ingest.sources import Stream, fresh_manifest, read_streams, select_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.streaming.progress import Progress
    from spark_ingest.streaming.services import Services

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""
    Land Kafka topics in bronze Iceberg tables, each record exactly once.

    The streams are the dbt sources that have [bold]config.meta.ingest[/bold]. SELECT is
    [bold]source[/bold], [bold]source.table[/bold] or [bold]tag:x[/bold]; none selects all.

    spark-ingest plan                    what would be created and read
    spark-ingest run --once              land all available records, then exit
    spark-ingest run pagila --every 10s  run until Ctrl-C
    spark-ingest verify                  check for lost and duplicate records
    spark-ingest reconcile               count captured tables in their databases
    spark-ingest alerts --every 1m       post alerts to a webhook
    """,
)

Select = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SELECT]...", help="source, source.table or tag:x; default: all."),
]


MaxRate = Annotated[int | None, typer.Option(help="Maximum records per second per stream.", min=1)]

MaxBatchBytes = Annotated[
    str,
    typer.Option(
        help="Maximum bytes of keys, values and headers per batch, estimated from earlier "
        "records: KB, MB, GB."
    ),
]

UnknownWait = Annotated[
    float,
    typer.Option(
        help="Seconds from the start of a batch to retry schema ids that the registry does not "
        "know, before their records go to quarantine.",
        min=0,
    ),
]


@dataclass(frozen=True)
class Options:
    """The options before the command name."""

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
        typer.Option(
            parser=local_file,
            metavar="FILE",
            help="dbt manifest to read instead of parsing the project; also s3://….",
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            parser=local_file,
            metavar="FILE",
            help="Connections file; default: profiles/ingest.yml; also s3://….",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Target of the connections file.")] = None,
) -> None:
    """Common options."""
    project = _project(project_dir)
    context.obj = Options(project, manifest, profile or project / "profiles" / "ingest.yml", target)


def _project(folder: Path) -> Path:
    """The folder, or its nearest parent with a dbt_project.yml."""
    here = folder.resolve()
    return next(
        (place for place in (here, *here.parents) if (place / "dbt_project.yml").exists()), here
    )


def chosen_streams(context: typer.Context, select: list[str] | None) -> list[Stream]:
    """The selected streams of the manifest."""
    chosen: Options = context.obj
    manifest = chosen.manifest or fresh_manifest(chosen.project)
    return select_streams(read_streams(manifest), select or [])


def open_services(
    context: typer.Context,
    select: list[str] | None,
    topics_needed: bool = False,
    some_topic_needed: bool = False,
    alone: bool = False,
) -> tuple[list[Stream], Services]:
    """Read the configuration, check topics and subjects, then start Spark, which is slow.

    Args:
        topics_needed: Whether topics must exist, except those of captured tables.
        some_topic_needed: Whether the topic of at least one stream must exist if SELECT was
            given, also for captured tables.
        alone: Whether to continue if some streams, but not all, have an invalid topic or
            subject: each of these then fails by itself.

    Raises:
        ConfigurationError: A topic or subject is missing or invalid.
        NothingCaptured: ``some_topic_needed``, and none of the selected streams has a topic.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.lake.preflight import check_spark
    from spark_ingest.lake.required_settings import check_settings
    from spark_ingest.lake.session import open_session
    from spark_ingest.records.topic_schemas import framing_of
    from spark_ingest.streaming.captured_topics import nothing_captured
    from spark_ingest.streaming.progress import LineProgress
    from spark_ingest.streaming.services import Services

    chosen: Options = context.obj
    connections = load_connections(chosen.profile, chosen.target)
    streams = chosen_streams(context, select)
    check_spark()
    broker, registry = Broker(connections), SchemaRegistry(connections)
    without_topic: list[Stream] = []
    invalid: list[ConfigurationError] = []
    for stream in streams:
        try:
            if topics_needed and stream.ingest.captured is None:
                broker.existing_topic(stream.topic, stream.name)
            elif broker.topic(stream.topic) is None:
                without_topic.append(stream)
            framing = framing_of(stream, "value")
            if framing.has_ids:
                for subject in stream.subjects:
                    registry.subject_schemas(subject, framing.ids)
        except ConfigurationError as error:
            invalid.append(error)
            if not alone or len(invalid) == len(streams):
                raise invalid[0] from None
    if select and some_topic_needed and len(without_topic) == len(streams):
        raise NothingCaptured("; ".join(f"{s.name}: {nothing_captured(s)}" for s in without_topic))
    progress: Progress = LineProgress()
    spark = open_session()
    check_settings(spark)
    _refuse_copied(spark, streams)
    return streams, Services(spark, connections, broker, registry, progress)


def open_lake(
    context: typer.Context, select: list[str] | None
) -> tuple[list[Stream], SparkSession]:
    """Read the selected streams and start Spark, for commands that need no other service."""
    from spark_ingest.lake.preflight import check_spark
    from spark_ingest.lake.required_settings import check_settings
    from spark_ingest.lake.session import open_session

    streams = chosen_streams(context, select)
    check_spark()
    spark = open_session()
    check_settings(spark)
    _refuse_copied(spark, streams)
    return streams, spark


def _refuse_copied(spark: SparkSession, streams: list[Stream]) -> None:
    from spark_ingest.lake import bronze
    from spark_ingest.operate.maintain import OWN_TABLES

    own = list(OWN_TABLES)
    bronze.refuse_copied(spark, [stream.table for stream in streams] + own)


def stop_on_signals() -> threading.Event:
    """An event that is set by Ctrl-C and SIGTERM, for a graceful stop."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def console() -> Console:
    """Standard output, 140 columns wide if it is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=140)
