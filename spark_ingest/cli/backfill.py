"""The command that lands the records before a stream's start offsets: backfill."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from spark_ingest.cli.app import (
    MaxBatchBytes,
    MaxRate,
    Select,
    UnknownWait,
    app,
    open_services,
    stop_on_signals,
)
from spark_ingest.cli.streams import begin_of
from spark_ingest.errors import NothingCaptured
from spark_ingest.units import size_of


@app.command("backfill")
def backfill_command(
    context: typer.Context,
    select: Select = None,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            help="How far back: earliest, an offset (of each partition), or a time (ISO 8601, "
            "default UTC).",
        ),
    ] = "earliest",
    max_batch: Annotated[int, typer.Option(help="Maximum records per batch.", min=1)] = 250_000,
    max_batch_bytes: MaxBatchBytes = "1GB",
    max_rate: MaxRate = None,
    unknown_wait: UnknownWait = 5.0,
) -> None:
    """Land the records before the start offsets of the streams.

    For streams that started with `run --from`; they may be running. The newest
    records are landed first. A backfill that was stopped or killed resumes.
    """
    offset = int(begin) if begin.isdecimal() else None
    most_bytes = size_of("--max-batch-bytes", max_batch_bytes)
    first = begin_of("earliest" if offset is not None else begin)
    streams, services = open_services(context, select, topics_needed=True, some_topic_needed=True)
    from spark_ingest.lake.required_settings import check_limits
    from spark_ingest.operate.backfill import BackfillSettings, backfill
    from spark_ingest.streaming.captured_topics import topic_of
    from spark_ingest.streaming.progress import open_progress

    check_limits(services.spark)
    stopping = stop_on_signals()
    settings = BackfillSettings(max_batch, unknown_wait, max_rate, most_bytes)
    landed: dict[str, int] = {}
    with open_progress() as progress:
        services = replace(services, progress=progress)
        for stream in streams:
            try:
                topic = topic_of(services, stream)
            except NothingCaptured as nothing:
                progress.note(f"{stream.name}: {nothing}; skipped")
                continue
            floor = services.broker.begin_offsets(topic, first)
            if offset is not None:
                floor = dict.fromkeys(topic.partitions, offset)
            landed[stream.name] = backfill(services, stream, floor, settings, stopping)
        for name, count in landed.items():
            progress.note(f"{name}: {count:,} offsets before its start are committed")
