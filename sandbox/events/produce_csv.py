"""`sandbox produce csv`: a person's own rows to a topic, by schemas made of them."""

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
        Path, typer.Argument(help="CSV with a header, UTF-8; packed when its name ends in .gz.")
    ],
    topic: Annotated[str, typer.Option(help="The topic, like shop.orders; created when absent.")],
    key: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="The column that is the records' key; never empty."),
    ],
    timestamps: Timestamps = None,
    delimiter: Delimiter = None,
    null: Annotated[
        str, typer.Option(metavar="TEXT", help="The cell that is null. Default: the empty one.")
    ] = "",
) -> None:
    """Send your own CSV to a topic of its own, as Avro by a schema made of it.

    The topic's schemas in the registry say what the columns are. Where it has
    none they are made of the header and the first 1,000 rows, and registered:
    a column is boolean, integer, decimal, date or timestamp when all its cells
    are, else a string; an integer with a zero before it (a postcode) is a
    string, too. All columns but the key may be empty. A further file for the
    topic is sent by the schemas of the first one. A row that does not fit is
    reported with its line and the reason, and the others are sent.

    `make new-stream STREAM=shop.orders` writes dbt's source and model of it.

    Examples:
        sandbox produce csv orders.csv --topic shop.orders --key order_id
        sandbox produce csv july.csv.gz --topic shop.orders --key order_id
        sandbox produce csv visits.csv --topic web.visits --key ID

    Exit codes: 0 every row was sent, 1 some were not, 2 wrong use or no services.
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
            # What is alike is found without being named.
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
    """The stream of a topic: by its schemas in the registry, or by those that a CSV asks for.

    Raises:
        ConfigurationError: The topic's values are no records with the key among their fields.
        ServiceUnavailable: The registry does not answer.
    """
    value = registered_schema(home, f"{topic}-value") or shape.value
    key = registered_schema(home, f"{topic}-key") or shape.key
    there = [field["name"] for field in value.get("fields", ())]
    if shape.key_field not in there:
        raise ConfigurationError(
            f"--key: the schema of {topic}-value has no field {shape.key_field}; it has: "
            f"{', '.join(there) or 'none, for it is no record'}: name one of them, or another "
            "topic"
        )
    return Stream(topic, value, key, shape.key_field, own_topic=topic)


def add_to(app: typer.Typer) -> None:
    """Give `sandbox produce` the command for a file."""
    app.command("csv", rich_help_panel="Files")(produce_csv)
