"""The commands for quarantined records: list, show, replay, discard."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import asdict, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_lake, open_services
from spark_ingest.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.quarantine.replay import Replayed
    from spark_ingest.quarantine.show import Group
    from spark_ingest.sources import Stream
    from spark_ingest.streaming.services import Services

_SAMPLE_SHOWN = 90

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    List, show, replay or discard the records that could not be landed in bronze.

    Each is in bronze.quarantine with its bytes, its position in Kafka and the
    reason. It stays open until it is replayed into its table or discarded.

    list                         counts by stream and reason
    show pagila.sales.avro 0 17  one record with its bytes
    replay pagila --dry-run      what would be replayed
    replay pagila                replay, also while the stream is running
    discard pagila --class not_framed --reason "load test of 3 May"
    """,
)
app.add_typer(commands, name="quarantine")


class Format(StrEnum):
    """The output format of ``list``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Classes = Annotated[
    list[str] | None,
    typer.Option("--class", help="Only this error class, as `list` shows it; may be repeated."),
]
Where = Annotated[
    str | None,
    typer.Option(
        help="Only rows of bronze.quarantine that match this SQL condition, for example "
        '"_kafka_partition = 0 and _kafka_offset < 100".',
        show_default=False,
    ),
]


@commands.command("list")
def list_command(
    context: typer.Context,
    select: Select = None,
    classes: Classes = None,
    where: Where = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include discarded and replayed records.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="table, json or csv.")] = Format.TABLE,
) -> None:
    """Count the quarantined records by stream and reason.

    `first` and `last` are partition:offset of the records quarantined first and
    last. Without SELECT, topics that are no longer declared by a source are
    included.
    """
    streams, spark = open_lake(context, select)
    found = list_groups(
        spark, streams, classes, where, everything=everything, everywhere=not select
    )
    print_groups(found, output)


@commands.command()
def show(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="The Kafka topic.")] = None,
    partition: Annotated[int | None, typer.Argument(help="Its partition.")] = None,
    offset: Annotated[int | None, typer.Argument(help="The record's offset.")] = None,
    where: Where = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the raw bytes of the value to this file.")
    ] = None,
) -> None:
    """Show one quarantined record: position, reason, headers, bytes as hex and text.

    Selects it by position, or the newest that matches --where.
    """
    from spark_ingest.quarantine.choice import Choice

    at = (topic, partition, offset)
    if (where is None) == (None in at) or (where is not None and at != (None,) * 3):
        raise ConfigurationError(
            "give TOPIC PARTITION OFFSET, as `spark-ingest quarantine list` shows them, or --where"
        )
    streams, spark = open_lake(context, None)
    from spark_ingest.quarantine import show as view

    if topic is not None and partition is not None and offset is not None:
        row, count = view.record(spark, topic, partition, offset)
    else:
        choice = Choice((), where, discarded=True)
        row, count = view.newest_record(spark, streams, choice, everywhere=True)
    if out is not None:
        write_value(row["_kafka_value"], out)
        return
    print("\n".join(view.screen(row, count)))


@commands.command()
def replay(
    context: typer.Context,
    select: Select = None,
    classes: Classes = None,
    where: Where = None,
    discarded: Annotated[
        bool, typer.Option("--discarded", help="Include discarded records.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decode them; change nothing.")
    ] = False,
) -> None:
    """Decode quarantined records with the current schemas; land those that are valid now.

    They keep their position, time, key and headers. The stream may be running. A
    replay may be killed and repeated: records that are already in bronze are only
    marked as replayed. Invalid records stay, with the current reason.
    """
    streams, services = open_services(context, select)
    from spark_ingest.lake.required_settings import check_limits

    check_limits(services.spark)
    for done in replay_streams(services, streams, classes, where, discarded, dry_run):
        for line in replayed_lines(done, dry_run):
            print(line)


@commands.command()
def discard(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="Reason for discarding them; stored with them.")],
    select: Select = None,
    classes: Classes = None,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Mark quarantined records as discarded.

    They keep their bytes and still count as accounted for; `replay --discarded`
    includes them.
    """
    if not reason.strip():
        raise ConfigurationError("--reason is empty: give the reason for discarding the records")
    streams, spark = open_lake(context, select)
    found = list_groups(spark, streams, classes, where, everything=False, everywhere=not select)
    if not found:
        print("no open record in quarantine: nothing to discard")
        return
    print_groups(found, Format.TABLE)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigurationError(
                "cannot ask for confirmation without a terminal: add --yes to discard all of these"
            )
        typer.confirm("Discard all of these?", abort=True)
    count = discard_records(spark, streams, classes, where, reason, not select)
    print(f"discarded {count:,}: {reason}")


def list_groups(
    spark: SparkSession,
    streams: list[Stream],
    classes: list[str] | None,
    where: str | None,
    *,
    everything: bool,
    everywhere: bool,
) -> list[Group]:
    """The quarantined records of streams by reason; only open ones unless ``everything``."""
    from spark_ingest.quarantine import show as view
    from spark_ingest.quarantine.choice import Choice

    choice = Choice(tuple(classes or ()), where, discarded=everything)
    return view.groups(spark, streams, choice, everywhere, replayed=everything)


def replay_streams(
    services: Services,
    streams: list[Stream],
    classes: list[str] | None,
    where: str | None,
    discarded: bool,
    dry_run: bool,
) -> list[Replayed]:
    """Replay streams one after the other; skip those without a table."""
    from spark_ingest.lake import bronze
    from spark_ingest.quarantine.choice import Choice
    from spark_ingest.quarantine.replay import replay

    choice = Choice(tuple(classes or ()), where, discarded)
    return [
        replay(services, stream, choice, dry_run=dry_run)
        for stream in streams
        if bronze.exists(services.spark, stream.table)
    ]


def discard_records(
    spark: SparkSession,
    streams: list[Stream],
    classes: list[str] | None,
    where: str | None,
    reason: str,
    everywhere: bool,
) -> int:
    """Discard the selected open records; return their number."""
    from spark_ingest.quarantine import choice

    topics = [stream.topic for stream in streams]
    rows = choice.rows_of(spark, topics, everywhere)
    chosen = choice.Choice(tuple(classes or ()), where).of(rows)
    return choice.discard(chosen, reason)


def replayed_lines(done: Replayed, dry_run: bool) -> list[str]:
    """The output lines for a replay of a stream."""
    would = "would be " if dry_run else ""
    if not (done.landed or done.existing or done.remaining):
        return [f"{done.stream}: nothing to replay"]
    commits = ""
    if done.commits:
        first, last = done.commits[0], done.commits[-1]
        commits = f" in commit {first}" if first == last else f" in commits {first} to {last}"
    lines = [f"{done.stream}: {done.landed:,} {would}replayed{commits}"]
    if done.existing:
        lines.append(f"  {done.existing:,} are in bronze already: {would}marked as replayed")
    for error_class, count in sorted(done.remaining.items()):
        lines.append(f"  {count:,} stay in quarantine: {error_class}")
    return lines


def print_groups(found: list[Group], output: Format) -> None:
    """Print the quarantined records by reason."""
    from spark_ingest.quarantine.show import Group

    if output is Format.JSON:
        print(json.dumps([asdict(group) for group in found], indent=2))
        return
    if output is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(field.name for field in fields(Group))
        writer.writerows(asdict(group).values() for group in found)
        return
    if not found:
        print("no open record in quarantine")
        return
    table = Table(
        "stream", "stage", "class", "open", "replayed", "discarded", "first", "last",
        "oldest, UTC", "newest message",
    )  # fmt: skip
    for group in found:
        counts = (group.open, group.replayed, group.discarded)
        sample = group.sample
        if len(sample) > _SAMPLE_SHOWN:
            sample = f"{sample[: _SAMPLE_SHOWN - 1]}…"
        table.add_row(
            group.stream or f"({group.topic})",
            group.stage,
            group.error_class,
            *(f"{count:,}" for count in counts),
            group.first,
            group.last,
            group.oldest[:19],
            sample,
        )
    for column in table.columns[3:8]:
        column.justify = "right"
    console().print(table)


def write_value(value: bytes | None, out: Path) -> None:
    """Write a record's raw value to a file.

    Raises:
        ConfigurationError: The value is null, or the file cannot be written.
    """
    if value is None:
        raise ConfigurationError("the record's value is null: there are no bytes to write")
    try:
        out.write_bytes(bytes(value))
    except OSError as error:
        raise ConfigurationError(f"--out {out}: {error.strerror}") from error
    print(f"{len(value):,} bytes written to {out}")
