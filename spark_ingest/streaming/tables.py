"""The tables that streams write to, made where they are missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import TROUBLE, Jvm, reason_text
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.records.bronze_rows import planned_columns
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services


def create_tables(services: Services, streams: Sequence[Stream]) -> list[str]:
    """Make the schema, quarantine, the commit log and each stream's table; what was made.

    Raises:
        ConfigurationError: A stream has no usable schema in the registry.
        ServiceUnavailable: The registry does not answer.
    """
    made = create_shared(services)
    with _named_together(services) as new:
        for stream in streams:
            if create_table(services, stream):
                new.append(stream)
    return made + [stream.table for stream in new]


def create_shared(services: Services) -> list[str]:
    """Make the schema, quarantine and the commit log where they are missing."""
    bronze.create_schema(services.spark)
    shared = (
        (quarantine_table.TABLE, quarantine_table.create),
        (commit_log.TABLE, commit_log.create),
    )
    return [table for table, create in shared if create(services.spark)]


def create_table(services: Services, stream: Stream) -> bool:
    """Make a stream's table where it is missing; whether it was missing.

    Who makes one names it in the commit log; its stream does so too before its first commit.

    Raises:
        ConfigurationError: It has no usable schema in the registry.
        ServiceUnavailable: The registry does not answer.
    """
    spark, jvm = services.spark, Jvm(services.spark)
    is_missing = not bronze.exists(spark, stream.table)
    if is_missing:
        schemas = Schemas(services.registry, stream, 0, time.sleep)
        bronze.create_table(
            spark,
            stream.table,
            planned_columns(spark, schemas),
            stream.ingest.partitioned_by,
            stream.columns,
            stream.description,
        )
    first_snapshot(jvm, stream.table)
    return is_missing


def prepare(services: Services, streams: Sequence[Stream]) -> set[str]:
    """Make what is missing before streams run; the names of those whose table could not be made.

    Their trouble is their own: each makes its table before it begins.

    Raises:
        ConfigurationError: No stream has a usable schema in the registry.
    """
    create_shared(services)
    refused: dict[str, ConfigurationError] = {}
    failed: dict[str, str] = {}
    try:
        with _named_together(services) as new:
            for stream in streams:
                try:
                    if create_table(services, stream):
                        new.append(stream)
                except ConfigurationError as error:
                    refused[stream.name] = error
                except TROUBLE as error:
                    failed[stream.name] = reason_text(error)
    except TROUBLE as error:
        services.progress.note(f"{reason_text(error)}; the streams try again")
    if refused and len(refused) == len(streams):
        raise next(iter(refused.values()))
    for name, reason in failed.items():
        services.progress.note(f"{name}: {reason}; its stream tries again")
    return {*refused, *failed}


@contextmanager
def _named_together(services: Services) -> Iterator[list[Stream]]:
    """Takes streams whose tables were made, and names these tables in one commit of the log.

    One for each would take longer than the table itself.
    """
    new: list[Stream] = []
    try:
        yield new
    finally:
        commit_log.name_tables(services.spark, new)


def create_again(services: Services, stream: Stream) -> None:
    """Make a stream's table where there is none, or none any more, and say so."""
    if create_table(services, stream):
        commit_log.name_tables(services.spark, [stream])
        services.progress.note(f"{stream.name}: {stream.table} was missing; created")
