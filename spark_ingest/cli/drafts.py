"""The commands that write what a captured table or a stream takes in dbt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from spark_ingest.cli.app import app
from spark_ingest.connect.profile import load_connections
from spark_ingest.errors import ConfigurationError


@app.command("new-captured")
def new_captured(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(metavar="SOURCE.TABLE", help="As dbt shall name it, like moma.artists.")
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            help="The topic with its changes; found when absent: its name ends with the table's."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,…", help="Primary-key columns, where the topic's records have no key."
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

    Form (flattened or envelope), position (lsn or binlog), key and columns are
    read from the schemas of the topic's newest records. Written are the table in
    the source's YAML, what its columns are, a staging model, the history of its
    rows, and what the database holds now, ready for `dbt build`; names and texts
    are a first draft to be read. What is there already is refused, and nothing is
    changed.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.drafts.plans import Wanted, plan_captured
    from spark_ingest.drafts.project_files import write_files

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
    table = planned.read
    print(
        f"{stream}: topic {table.topic}, form {table.form}, position {table.position}, "
        f"key {', '.join(table.key)}, {len(table.columns)} columns"
    )
    _say_written(planned.files, table.left_out)
    model = f"int_{stream.replace('.', '__')}_current"
    print(f"next: spark-ingest run {stream} --once && dbt build --select +{model}")


@app.command("new-stream")
def new_stream(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(metavar="SOURCE.TABLE", help="As dbt shall name it, like shop.orders.")
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            help="The topic with its records; when absent the one whose name ends with the "
            "table's, with --csv SOURCE.TABLE."
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the columns from a CSV's header and first 1,000 rows; without it they "
            "are read from the registry.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --csv: the column that is the records' key."),
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Who answers for the model; when absent SOURCE.")
    ] = None,
) -> None:
    """Write source, docs and staging model of a topic with events, ready for `dbt build`.

    The columns are those of the value's Avro schema in the registry, or of a CSV
    whose rows will be sent. Of a CSV a column is boolean, integer, decimal, date
    or timestamp when all its cells are, else a string; an integer with a zero
    before it is a string, too. Written are the table in the source's YAML, what
    its columns are, and `stg_<source>__<table>` with its YAML and a unit test;
    names and texts are a first draft to be read. What is there already is
    refused, and nothing is changed. Examples:

        spark-ingest new-stream shop.orders
        spark-ingest new-stream shop.orders --topic com.acme.orders.v1
        spark-ingest new-stream shop.orders --csv orders.csv --key order_id

    A sandbox sends a CSV's rows: sandbox produce csv orders.csv --topic
    shop.orders --key order_id. Exit codes: 0 written, 2 wrong use or
    configuration.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.drafts.plans import Wanted, plan_of_csv, plan_of_topic
    from spark_ingest.drafts.project_files import write_files

    chosen = context.obj
    wanted = Wanted(stream, topic, domain=domain)
    if csv is not None:
        if key is None:
            raise ConfigurationError(
                "--csv needs --key COLUMN: the column that is the records' key"
            )
        planned = plan_of_csv(chosen.project, wanted, csv, key)
    elif key is not None:
        raise ConfigurationError(
            "--key belongs to --csv: without a file the registry says what the key is"
        )
    else:
        connections = load_connections(chosen.profile, chosen.target)
        planned = plan_of_topic(
            chosen.project, wanted, SchemaRegistry(connections), Broker(connections)
        )
    write_files(chosen.project, planned.files)
    found = planned.read
    print(
        f"{stream}: topic {found.topic}, key {found.key_type or 'none'}, "
        f"{len(found.columns)} columns"
    )
    _say_written(planned.files, found.left_out)
    model = f"stg_{stream.replace('.', '__')}"
    print(f"next: spark-ingest run {stream} --once && dbt build --select {model}")


def _say_written(files: Iterable[Path], left_out: Mapping[str, str]) -> None:
    for path in files:
        print(f"wrote {path}")
    for name, kind in left_out.items():
        print(f"left out {name}: {kind} is in bronze; no type that both engines share holds it")
