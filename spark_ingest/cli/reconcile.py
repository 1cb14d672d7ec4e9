"""The command that counts captured tables in their databases: reconcile."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Options, Select, app, chosen_streams, console, open_lake
from spark_ingest.connect.databases import Database, check_driver, database_of
from spark_ingest.connect.profile import read_target
from spark_ingest.connect.row_counts import Counted, Patience, count_rows
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.sources import Stream

if TYPE_CHECKING:
    from spark_ingest.captured import Captured


@app.command()
def reconcile(
    context: typer.Context,
    select: Select = None,
    lock_wait: Annotated[
        float,
        typer.Option(
            help="Lock timeout in seconds: how long PostgreSQL's writers may wait.", min=0.001
        ),
    ] = 1.0,
    patience: Annotated[
        float, typer.Option(help="Seconds to retry while a table is locked.", min=0)
    ] = 60.0,
) -> None:
    """Count the rows of captured tables in their databases, for comparison in dbt.

    Each count is exact at a position of the database's log; both are appended to
    bronze.ingest_reconciliations. After the next `dbt build`, rpt_reconciliation
    has the rows of the history at the same position, and the difference: not 0 if
    changes are lost.

    PostgreSQL: a table lock waits for running transactions and is released after
    milliseconds; the count itself blocks no writers. The user needs SELECT and
    MAINTAIN (PostgreSQL 17; before, UPDATE). MariaDB: no lock; the user needs
    SELECT.

    Database URLs are configured under `databases` in profiles/ingest.yml, by the
    name in a source's `captured.database`, or by the source's name. Without
    SELECT, tables of other databases are skipped. Exits 1 if a table could not be
    counted; the others are.
    """
    chosen: Options = context.obj
    target = read_target(chosen.profile, chosen.target)
    found: list[tuple[Stream, str, Database]] = []
    for stream in chosen_streams(context, select):
        why, database = _why_not(stream), None
        captured = stream.ingest.captured
        if why is None and captured is not None:
            name = captured.database_in(stream.source)
            database = database_of(target, name)
            why = None if database else f"no {target.where}.databases.{name}.url"
        if database is not None and captured is not None:
            check_driver(database)
            found.append((stream, captured.table_in(stream.topic), database))
        elif select:
            raise ConfigurationError(f"{stream.name} cannot be reconciled: {why}")
        elif captured is not None:
            print(f"{stream.name}: skipped, {why}", file=sys.stderr)
    if not found:
        raise ConfigurationError(
            f"nothing to reconcile: no captured table has a database in {target.where}.databases"
        )
    _, spark = open_lake(context, [stream.name for stream, _, _ in found])
    from spark_ingest.operate import reconciliations

    reconciliations.create(spark)
    shown = Table("stream", "table", "rows", "position", "writers waited")
    shown.columns[2].justify = shown.columns[4].justify = "right"
    failed = 0
    for stream, table, database in found:
        print(f"{stream.name}: counting {table}", file=sys.stderr, flush=True)
        try:
            counted = count_rows(database, table, Patience(lock_wait, patience))
        except MillraceError as error:
            print(f"{stream.name}: not counted: {error}", file=sys.stderr)
            failed += 1
            continue
        reconciliations.append(
            spark,
            reconciliations.Reconciliation(
                stream.name,
                stream.table,
                database.name,
                table,
                counted.position,
                counted.rows,
                counted.at,
            ),
        )
        shown.add_row(*_cells(stream, table, counted))
    if shown.row_count:
        console().print(shown)
    if failed:
        raise typer.Exit(1)


def _why_not(stream: Stream) -> str | None:
    """Why a stream's table cannot be counted at a log position; None if it can."""
    captured: Captured | None = stream.ingest.captured
    if captured is None:
        return "it is not captured from a database"
    if not isinstance(captured.position, str):
        return f"its position is {', '.join(captured.position)}, not a position in a database log"
    return None


def _cells(stream: Stream, table: str, counted: Counted) -> tuple[str, ...]:
    waited = f"{counted.locked_seconds * 1000:,.0f} ms"
    return stream.name, table, f"{counted.rows:,}", counted.position, waited
