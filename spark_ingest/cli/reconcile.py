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
        float, typer.Option(help="Seconds to try again while others keep a table locked.", min=0)
    ] = 60.0,
) -> None:
    """Count captured tables in their databases, for dbt to compare.

    Each count is exact at one place of the database's log, and both are appended
    to bronze.ingest_reconciliations. After the next `dbt build`
    rpt_reconciliation has the rows that the history holds at the same place, and
    the difference: 0, or something is lost.

    PostgreSQL: a lock waits until nobody is changing the table and is let go
    after milliseconds; the count itself holds up nobody. The user needs SELECT
    and MAINTAIN (PostgreSQL 17; before, UPDATE). MariaDB: no lock; the user needs
    SELECT.

    Where the databases are stands under `databases` in profiles/ingest.yml, by
    the name that a source's `captured.database` gives them, or by that of the
    source. Without SELECT the tables of databases that are not there are left
    out. Exits 1 when a table could not be counted; the others are.
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
            print(f"{stream.name}: left out, {why}", file=sys.stderr)
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
    """Why a stream's table cannot be counted at a place; None where it can."""
    captured: Captured | None = stream.ingest.captured
    if captured is None:
        return "it is not captured from a database"
    if not isinstance(captured.position, str):
        return f"its position is {', '.join(captured.position)}, not a place in the database's log"
    return None


def _cells(stream: Stream, table: str, counted: Counted) -> tuple[str, ...]:
    waited = f"{counted.locked_seconds * 1000:,.0f} ms"
    return stream.name, table, f"{counted.rows:,}", counted.position, waited
