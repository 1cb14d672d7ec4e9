"""The command for table maintenance: maintain."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_lake, stop_on_signals
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.units import duration, size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.operate.maintain import Maintained, Policy
    from spark_ingest.sources import Stream

# Listing orphan files lists all files of a table.
_ORPHANS_EVERY_SECONDS = 86400.0


class Format(StrEnum):
    """How the result is printed."""

    TABLE = "table"
    JSON = "json"


@app.command("maintain")
def maintain_command(
    context: typer.Context,
    select: Select = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            help="Keep snapshots younger than this; at least the duration of the longest query."
        ),
    ] = "1h",
    target_size: Annotated[
        str, typer.Option(help="Target size of a compacted file: KB, MB, GB.")
    ] = "128MB",
    orphans: Annotated[str, typer.Option(help="Remove orphan files older than this.")] = "3d",
    every: Annotated[
        str | None, typer.Option(help="Repeat until Ctrl-C at this interval: 10m.")
    ] = None,
    whole_lake: Annotated[
        bool, typer.Option("--all", help="All tables of the lake, including those of dbt.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = (Format.TABLE),
) -> None:
    """Compact small files, expire snapshots, remove orphan files.

    Maintains the streams' tables and, without SELECT, quarantine, the commit log
    and the checkpoints of verify. Streams may run at the same time. It can be
    stopped at any time; the next run continues. A table that fails is reported,
    and the others are maintained; the exit code is 1 then.
    """
    if whole_lake and select:
        raise ConfigurationError("give either SELECT or --all")
    if dry_run and every:
        raise ConfigurationError("give either --dry-run or --every")
    pause = duration("--every", every).total_seconds() if every else None
    keep_for, file_size = (duration("--keep", keep), size_of("--target-size", target_size))
    orphans_after = duration("--orphans", orphans)
    from spark_ingest.operate.maintain import Policy

    policy = Policy(keep_for, file_size, orphans_after)
    streams, spark = open_lake(context, select)
    stopping = stop_on_signals() if pause is not None else threading.Event()
    listed: float | None = None
    while True:
        began = time.monotonic()
        with_orphans = listed is None or began - listed >= _ORPHANS_EVERY_SECONDS
        now = policy if with_orphans else replace(policy, orphans=None)
        if with_orphans:
            listed = began
        tables = _tables(spark, streams, everything=not select, whole_lake=whole_lake)
        failed = _round(spark, tables, now, dry_run, form, stopping)
        if failed and pause is None:
            raise typer.Exit(1)
        if pause is None or stopping.wait(max(pause - (time.monotonic() - began), 0)):
            return


def _tables(
    spark: SparkSession, streams: list[Stream], *, everything: bool, whole_lake: bool
) -> list[str]:
    from spark_ingest.lake import bronze
    from spark_ingest.operate import maintain

    if whole_lake:
        return maintain.lake_tables(spark)
    names = [stream.table for stream in streams]
    if everything:
        names += maintain.OWN_TABLES
    return [name for name in names if bronze.exists(spark, name)]


def _round(
    spark: SparkSession,
    tables: list[str],
    policy: Policy,
    dry_run: bool,
    form: Format,
    stopping: threading.Event,
) -> bool:
    """Maintain tables and report them; whether one failed, which leaves the others maintained."""
    from spark_ingest.operate.maintain import maintain

    done: list[Maintained] = []
    failed = False
    for table in tables:
        if stopping.is_set():
            break
        try:
            done.append(maintain(spark, table, policy, dry_run, stopping.is_set))
        except MillraceError as error:
            failed = True
            print(f"spark-ingest: {error}", file=sys.stderr)
    if form is Format.JSON:
        print(json.dumps([asdict(one) for one in done]), flush=True)
    else:
        console().print(_shown(done, dry_run))
    return failed


def _shown(done: list[Maintained], dry_run: bool) -> Table:
    numbers = ("files", "MB", "snapshots", "manifests", "metadata MB")
    shown = Table("table", *numbers, "would" if dry_run else "did")
    for column in shown.columns[1:-1]:
        column.justify = "right"
    for one in done:
        old, new = one.before, one.after
        pairs = (
            (str(old.files), str(new.files)),
            (_megabytes(old.bytes), _megabytes(new.bytes)),
            (str(old.snapshots), str(new.snapshots)),
            (str(old.manifests), str(new.manifests)),
            (_megabytes(old.metadata_bytes), _megabytes(new.metadata_bytes)),
        )
        changes = (a if a == b else f"{a} → {b}" for a, b in pairs)
        shown.add_row(one.table, *changes, ", ".join(one.steps) or "nothing to do")
    return shown


def _megabytes(size: int | None) -> str:
    return "?" if size is None else f"{size / 2**20:,.2f}"
