"""Creates the tables that streams write to, if they are missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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

# Most of a creation is waiting for the registry, the catalog and the storage.
_AT_ONCE = 8


def create_tables(services: Services, streams: Sequence[Stream]) -> list[str]:
    """Create the schema, quarantine, the commit log and each stream's table.

    Returns the names of the tables that it created.

    Raises:
        ConfigurationError: A stream has no usable schema in the registry.
        ServiceUnavailable: The registry is unavailable.
    """
    created = create_shared(services)
    with _named_together(services) as new, _creating(services, streams) as creating:
        for stream, made in creating:
            if made.result():
                new.append(stream)
    return created + [stream.table for stream in new]


def create_shared(services: Services) -> list[str]:
    """Create the schema, quarantine and the commit log if missing; the names of new tables."""
    bronze.create_schema(services.spark)
    shared = (
        (quarantine_table.TABLE, quarantine_table.create),
        (commit_log.TABLE, commit_log.create),
    )
    return [table for table, create in shared if create(services.spark)]


def create_table(services: Services, stream: Stream) -> bool:
    """Create a stream's table if it is missing; whether it was missing.

    The caller names a new table in the commit log; its stream also does so before its first
    commit.

    Raises:
        ConfigurationError: It has no usable schema in the registry.
        ServiceUnavailable: The registry is unavailable.
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
    """Create missing tables before streams run; the names of the streams whose table failed.

    Each of these streams retries before it starts.

    Raises:
        ConfigurationError: No stream has a usable schema in the registry.
    """
    create_shared(services)
    refused: dict[str, ConfigurationError] = {}
    failed: dict[str, str] = {}
    try:
        with _named_together(services) as new, _creating(services, streams) as creating:
            for stream, made in creating:
                try:
                    if made.result():
                        new.append(stream)
                except ConfigurationError as error:
                    refused[stream.name] = error
                except TROUBLE as error:
                    failed[stream.name] = reason_text(error)
    except TROUBLE as error:
        services.progress.note(f"{reason_text(error)}; the streams will retry")
    if refused and len(refused) == len(streams):
        raise next(iter(refused.values()))
    for name, reason in failed.items():
        services.progress.note(f"{name}: {reason}; its stream will retry")
    return {*refused, *failed}


@contextmanager
def _creating(
    services: Services, streams: Sequence[Stream]
) -> Iterator[list[tuple[Stream, Future[bool]]]]:
    """Create missing tables side by side; an error in the body cancels those not yet begun."""
    with ThreadPoolExecutor(_AT_ONCE, "create") as threads:
        try:
            yield [(one, threads.submit(create_table, services, one)) for one in streams]
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _named_together(services: Services) -> Iterator[list[Stream]]:
    """Collect streams with new tables, then name these tables in one commit of the log.

    A commit per table would take longer than creating the table.
    """
    new: list[Stream] = []
    try:
        yield new
    finally:
        commit_log.name_tables(services.spark, new)


def create_missing_table(services: Services, stream: Stream) -> None:
    """Create a stream's table if it is missing or was dropped, and log a note."""
    if create_table(services, stream):
        commit_log.name_tables(services.spark, [stream])
        services.progress.note(f"{stream.name}: {stream.table} was missing; created")
