"""The command that compares the columns in sources, registry and tables: schemas check."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from spark_ingest.cli.app import Select, app, open_services

commands = typer.Typer(
    no_args_is_help=True,
    help="Compare a stream's columns in the sources' YAML, the registry and bronze.",
)
app.add_typer(commands, name="schemas")


@commands.callback()
def schemas() -> None:
    """Compare a stream's columns."""


@commands.command()
def check(
    context: typer.Context,
    select: Select = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Add missing columns to the YAML; remove nothing."),
    ] = False,
) -> None:
    """Print each difference with its fix; exit 1 if there are any.

    Compares the columns and data types in the source's YAML, all versions of the
    topic's schemas in the registry, and the bronze table. --write adds the
    missing columns to the YAML with their types and the descriptions of the
    schema; the printed differences are those before.
    """
    streams, services = open_services(context, select)
    from spark_ingest.operate.column_agreement import compare
    from spark_ingest.operate.source_yaml import add_columns
    from spark_ingest.records.topic_schemas import Schemas

    found = 0
    for stream in streams:
        schemas = Schemas(services.registry, stream, 0, time.sleep)
        agreement = compare(services.spark, schemas)
        for line in agreement.differences:
            print(line)
        found += len(agreement.differences)
        if write and agreement.missing:
            file = context.obj.project / stream.file
            add_columns(file, stream.name, agreement.missing)
            names = ", ".join(column.name for column in agreement.missing)
            print(f"{stream.name}: wrote to {stream.file}: {names}")
    if found:
        raise typer.Exit(1)
    print(f"YAML, registry and table agree: {', '.join(s.name for s in streams)}")
