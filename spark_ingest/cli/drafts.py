"""The commands that generate dbt sources and models: new-captured, new-stream."""

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
        str, typer.Argument(metavar="SOURCE.TABLE", help="Name in dbt, such as moma.artists.")
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            help="Topic of the change events; default: the one whose name ends with the table's."
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
            help="Folder below models/intermediate, and owner; default: that of the source's "
            "other tables, or SOURCE."
        ),
    ] = None,
) -> None:
    """Generate source, docs and models of a captured table from its registry schemas.

    Form (flattened or envelope), position (lsn or binlog), key and columns are
    read from the schemas of the topic's newest records. The command writes the
    table in the source's YAML, docs of its columns, a staging model, a history
    model and a model of the current rows, ready for `dbt build`; review the
    generated names and texts. Fails without a change if any of them exists.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.drafts.plans import DraftOptions, plan_captured
    from spark_ingest.drafts.project_files import write_files

    chosen = context.obj
    connections = load_connections(chosen.profile, chosen.target)
    named = tuple(part.strip() for part in (key or "").split(",") if part.strip())
    planned = plan_captured(
        chosen.project,
        DraftOptions(stream, topic, named, domain),
        SchemaRegistry(connections),
        Broker(connections),
    )
    write_files(chosen.project, planned.files)
    table = planned.read
    print(
        f"{stream}: topic {table.topic}, form {table.form}, position {table.position}, "
        f"key {', '.join(table.key)}, {len(table.columns)} columns"
    )
    _print_written(planned.files, table.left_out)
    model = f"int_{stream.replace('.', '__')}_current"
    print(f"next: spark-ingest run {stream} --once && dbt build --select +{model}")


@app.command("new-stream")
def new_stream(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(metavar="SOURCE.TABLE", help="Name in dbt, such as shop.orders.")
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            help="Topic; default: the one whose name ends with the table's, with --csv "
            "SOURCE.TABLE."
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Infer the columns from the header and first 1,000 rows of a CSV file instead "
            "of the registry.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --csv: the column with the record key."),
    ] = None,
    domain: Annotated[str | None, typer.Option(help="Owner of the model; default: SOURCE.")] = None,
) -> None:
    """Generate source, docs and staging model of an event topic, ready for `dbt build`.

    The columns are those of the value's Avro schema in the registry, or of a CSV
    file whose rows will be produced. A CSV column is boolean, integer, decimal,
    date or timestamp if all its cells are, else string; integers with leading
    zeros are strings. The command writes the table in the source's YAML, docs of
    its columns, and `stg_<source>__<table>` with its YAML and a unit test; review
    the generated names and texts. Fails without a change if any of them exists.
    For example:

        spark-ingest new-stream shop.orders
        spark-ingest new-stream shop.orders --topic com.acme.orders.v1
        spark-ingest new-stream shop.orders --csv orders.csv --key order_id

    In a sandbox, produce the rows of a CSV file: sandbox produce csv orders.csv
    --topic shop.orders --key order_id. Exit codes: 0 written, 2 wrong usage or
    configuration.
    """
    from spark_ingest.connect.broker import Broker
    from spark_ingest.connect.registry import SchemaRegistry
    from spark_ingest.drafts.plans import DraftOptions, plan_of_csv, plan_of_topic
    from spark_ingest.drafts.project_files import write_files

    chosen = context.obj
    options = DraftOptions(stream, topic, domain=domain)
    if csv is not None:
        if key is None:
            raise ConfigurationError("--csv needs --key COLUMN: the column with the record key")
        planned = plan_of_csv(chosen.project, options, csv, key)
    elif key is not None:
        raise ConfigurationError(
            "--key needs --csv: without a CSV file the key is read from the registry"
        )
    else:
        connections = load_connections(chosen.profile, chosen.target)
        planned = plan_of_topic(
            chosen.project, options, SchemaRegistry(connections), Broker(connections)
        )
    write_files(chosen.project, planned.files)
    found = planned.read
    print(
        f"{stream}: topic {found.topic}, key {found.key_type or 'none'}, "
        f"{len(found.columns)} columns"
    )
    _print_written(planned.files, found.left_out)
    model = f"stg_{stream.replace('.', '__')}"
    print(f"next: spark-ingest run {stream} --once && dbt build --select {model}")


def _print_written(files: Iterable[Path], left_out: Mapping[str, str]) -> None:
    for path in files:
        print(f"wrote {path}")
    for name, kind in left_out.items():
        print(f"excluded {name}: {kind} is in bronze, but has no type common to both engines")
