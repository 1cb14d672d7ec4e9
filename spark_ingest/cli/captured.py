"""The command that writes what a captured table takes in dbt."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_ingest.cli.app import app
from spark_ingest.connect.profile import load_connections


@app.command("new-captured")
def new_captured(
    context: typer.Context,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE.TABLE", help="As dbt shall name it, like moma.artists."
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            help="The topic with its changes; found when absent: its name ends with the "
            "table's."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,…",
            help="What names a row, where the topic's records have no key.",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The folder below models/intermediate, and the owner; when absent that of the "
            "source's other tables, or SOURCE."
        ),
    ] = None,
) -> None:
    """Write source, docs and models of a captured table, from its schemas in the registry.

    Form (flattened or envelope), position (lsn or binlog), key and columns are read from the
    schemas of the topic's newest records. Written are the table in the source's YAML, what
    its columns are, a staging model, the history of its rows, and what the database holds
    now, ready for `dbt build`; names and texts are a first draft to be read. What is there
    already is refused, and nothing is changed.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.operate.new_captured import Wanted, plan_captured, write_files

    chosen = context.obj
    connections = load_connections(chosen.profile, chosen.target)
    named = tuple(part.strip() for part in (key or "").split(",") if part.strip())
    planned = plan_captured(
        chosen.project,
        Wanted(stream, topic, named, domain),
        SchemaRegistry(connections),
        Broker(connections),
    )
    write_files(chosen.project, planned.files)
    table = planned.table
    print(
        f"{stream}: topic {table.topic}, form {table.form}, position {table.position}, "
        f"key {', '.join(table.key)}, {len(table.columns)} columns"
    )
    for path in planned.files:
        print(f"wrote {path}")
    for name, kind in table.left_out.items():
        print(
            f"left out {name}: {kind} is in bronze; no type that both engines share holds it"
        )
    source, _, name = stream.partition(".")
    print(
        f"next: spark-ingest run {stream} --once && "
        f"dbt build --select +int_{source}__{name}_current"
    )
