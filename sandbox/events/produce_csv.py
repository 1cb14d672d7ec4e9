"""`sandbox produce csv`: rows of a CSV file to a topic, with schemas derived from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandbox.events.file_rows import bare
from sandbox.events.replay import Delimiter, Timestamps, send_rows
from sandbox.events.replay_rows import FileFormat
from sandbox.events.schema_ids import registered_schema
from sandbox.services.kafka import create_topic
from sandbox.settings import Home, load_home
from sandbox.streams import Stream
from spark_ingest.drafts.csv_schema import CsvShape, read_shape
from spark_ingest.drafts.text_file import not_utf8, open_text
from spark_ingest.errors import ConfigurationError


def produce_csv(
    file: Annotated[
        Path,
        typer.Argument(help="CSV file with a header, UTF-8; gzip-compressed if it ends in .gz."),
    ],
    topic: Annotated[str, typer.Option(help="The topic, such as shop.orders; created if missing.")],
    key: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="The column of the record key; must not be empty."),
    ],
    timestamps: Timestamps = None,
    delimiter: Delimiter = None,
    null: Annotated[
        str, typer.Option(metavar="TEXT", help="The cell value that means null. Default: empty.")
    ] = "",
) -> None:
    """Send a CSV file to a topic of its own, as Avro with a derived schema.

    The topic's schemas in the registry define the columns. If there are none,
    they are inferred from the header and the first 1,000 rows, and registered: a
    column is boolean, integer, decimal, date or timestamp if all its cells are,
    otherwise a string; integers with leading zeros (postcodes) are strings, too.
    All columns but the key are nullable. Further files for the topic use the same
    schemas. An invalid row is reported with its line and the reason, and the
    others are sent.

    `make new-stream STREAM=shop.orders` generates the dbt source and model.

    Examples:
        sandbox produce csv orders.csv --topic shop.orders --key order_id
        sandbox produce csv july.csv.gz --topic shop.orders --key order_id
        sandbox produce csv visits.csv --topic web.visits --key ID

    Exit codes: 0 all rows sent, 1 some rows not sent, 2 usage error or services
    down.
    """
    separator = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    if separator is not None and len(separator) != 1:
        raise ConfigurationError(f"--delimiter {delimiter!r} is not one character (tab is '\\t')")
    home = load_home()
    with open_text(file) as text:
        try:
            shape = read_shape(text, str(file), topic, key, separator, null)
            text.seek(0)
            stream = stream_of(home, topic, shape)
            create_topic(home, stream)
            known = {field["name"] for field in stream.value_schema["fields"]}
            # Similar names are matched without --column.
            columns = {
                field: header
                for field, header in shape.headers.items()
                if field in known and bare(field) != bare(header)
            }
            file_format = FileFormat(shape.separator, null, columns, {})
            send_rows(stream, text, str(file), file_format, timestamps)
        except UnicodeDecodeError as error:
            not_utf8(str(file), error)


def stream_of(home: Home, topic: str, shape: CsvShape) -> Stream:
    """The stream of a topic, with its schemas in the registry, or those inferred from a CSV.

    Raises:
        ConfigurationError: The topic's value schema has no field for the key.
        ServiceUnavailable: The registry is down.
    """
    value = registered_schema(home, f"{topic}-value") or shape.value
    key = registered_schema(home, f"{topic}-key") or shape.key
    there = [field["name"] for field in value.get("fields", ())]
    if shape.key_field not in there:
        raise ConfigurationError(
            f"--key: the schema of {topic}-value has no field {shape.key_field}; it has: "
            f"{', '.join(there) or 'none, it is not a record'}: use one of these, or another "
            "topic"
        )
    return Stream(topic, value, key, shape.key_field, own_topic=topic)


def add_to(app: typer.Typer) -> None:
    """Add the command for CSV files to `sandbox produce`."""
    app.command("csv", rich_help_panel="Files")(produce_csv)
