"""The command that checks the landed records: verify."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_services

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.connect.broker import Topic
    from spark_ingest.operate.verify import PartitionResult
    from spark_ingest.sources import Stream
    from spark_ingest.streaming.services import Services


@app.command()
def verify(
    context: typer.Context,
    select: Select = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Verify from the first commit instead of from the checkpoint."),
    ] = False,
) -> None:
    """Verify from the tables and the broker that each record was landed exactly once.

    For each topic and partition: every offset from the first to the last
    committed one is exactly once in bronze or in quarantine, or has no record.
    Prints other offsets and exits 1. A stream that never ran is reported, but
    does not fail. Expired records that were accepted as lost by `recover
    --accept-gap` are reported. Two commits with the same commit id fail: dbt may
    have skipped one of them.

    Verified offsets are stored as a checkpoint in bronze.ingest_proofs, where the
    next run starts; it starts at the first commit again if anything before the
    checkpoint may have changed.
    """
    streams, services = open_services(context, select)
    from spark_ingest.lake import bronze

    results: list[PartitionResult] = []
    idle: list[str] = []
    gone: list[str] = []
    double: list[str] = []
    for stream in streams:
        topic = services.broker.topic(stream.topic)
        has_table = bronze.exists(services.spark, stream.table)
        if has_table:
            double += _there_twice(services.spark, stream, full)
        found: list[PartitionResult] = []
        note = None
        if has_table and topic is not None:
            found = _verified(services, stream, topic, full)
        elif has_table:
            note = _filled_from(services, stream)
        note = note or (None if found else _earlier_table(services, stream))
        results += found
        if note is not None:
            gone.append(note)
        elif not found:
            idle.append(stream.name)
    _print_results(results)
    for name in idle:
        print(f"{name}: never started, nothing to verify")
    broken = [result for result in results if not result.holds]
    for result in broken:
        _print_broken(result)
    for note in [*gone, *double]:
        print(note, file=sys.stderr)
    if broken or gone or double:
        raise typer.Exit(1)
    total = sum(result.bronze + result.quarantined for result in results)
    given_up = sum(result.given_up for result in results)
    but = f"; {given_up:,} offsets were accepted as lost" if given_up else ""
    if results:
        print(f"all {total:,} records are in exactly one table, exactly once{but}")


def _there_twice(spark: SparkSession, stream: Stream, full: bool) -> list[str]:
    """A message for each commit id of more than one commit."""
    from spark_ingest.operate import double_commits

    return [
        f"{stream.name}: {stream.table} has commit {double.commit_id} twice: {double}: another "
        "program wrote it; dbt may have skipped some of these rows: "
        f"`dbt build --full-refresh --select source:{stream.name}+`"
        for double in double_commits.find(spark, stream, full=full)
    ]


def _filled_from(services: Services, stream: Stream) -> str | None:
    """A message for a table whose topic does not exist; None without a commit."""
    from spark_ingest.commits.resume import position_of

    here = position_of(services.spark, stream)
    if here.topic_id is None:
        return None
    return (
        f"{stream.name}: topic {stream.topic} does not exist, but {stream.table} was filled from "
        f"it up to commit {here.commit_id}: nothing can be verified; check the cluster in "
        "profiles/ingest.yml"
    )


def _earlier_table(services: Services, stream: Stream) -> str | None:
    """A message if all commits of the stream are of a previous table that was dropped."""
    from spark_ingest.commits import commit_log

    earlier = commit_log.previous_table(services.spark, stream)
    if earlier is None:
        return None
    return (
        f"{stream.name}: {stream.table}, which was filled up to commit {earlier.last}, was "
        "dropped: `spark-ingest run` starts over with the records that the broker still has; "
        "for other ways see docs/runbooks/lost-lake.md"
    )


def _verified(
    services: Services, stream: Stream, topic: Topic, full: bool
) -> list[PartitionResult]:
    """Verify one stream from its checkpoints on, and store the new checkpoints."""
    from spark_ingest.commits.table_identity import uuid_of
    from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason
    from spark_ingest.operate import checkpoints
    from spark_ingest.operate.verify import verify_stream

    spark = services.spark
    uuid = uuid_of(Jvm(spark), stream.table)
    known = checkpoints.newest(spark, uuid)
    found = verify_stream(spark, services.broker, stream, topic, {} if full else known)
    for checkpoint in found.since.values():
        print(
            f"{stream.name}: verified from the checkpoint at commit {checkpoint.commit_id} "
            f"({checkpoint.at:%Y-%m-%d %H:%M:%S} UTC); --full verifies all commits"
        )
    if known and not found.since and not full:
        print(
            f"{stream.name}: verified from the first commit: data before the checkpoint may have "
            "changed"
        )
    if found.new_checkpoints:
        try:
            checkpoints.write(spark, stream.table, uuid, found.new_checkpoints)
        except JAVA_ERRORS as error:
            print(
                f"{stream.name}: no checkpoint could be written to {checkpoints.TABLE}; the next "
                f"`verify` starts where this one did: {java_reason(error)}",
                file=sys.stderr,
            )
    return found.partitions


def _print_results(results: list[PartitionResult]) -> None:
    table = Table(
        "stream", "partition", "first", "end", "bronze", "quarantine", "empty", "given up",
        "missing", "doubled", "lag",
    )  # fmt: skip
    for result in results:
        missing = sum(end - first for first, end in result.missing)
        numbers = (
            result.partition, result.first, result.end, result.bronze, result.quarantined,
            result.empty, result.given_up, missing, result.doubled, result.lag,
        )  # fmt: skip
        table.add_row(_name(result), *(f"{number:,}" for number in numbers))
    for column in table.columns[1:]:
        column.justify = "right"
    if results:
        console().print(table)


def _print_broken(result: PartitionResult) -> None:
    from spark_ingest.operate.verify import gaps_text

    place = f"{_name(result)} partition {result.partition}"
    if result.missing:
        print(f"{place}: missing offsets {gaps_text(result.missing)}", file=sys.stderr)
    if result.doubled:
        print(f"{place}: {result.doubled} duplicate offsets", file=sys.stderr)
    if result.uncommitted:
        print(f"{place}: {result.uncommitted} uncommitted rows", file=sys.stderr)


def _name(result: PartitionResult) -> str:
    earlier = f" (topic id {result.topic_id})" if result.is_earlier else ""
    return f"{result.stream}{earlier}"
