"""`sandbox replay`: a person's own CSV or JSON rows as records of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from sandbox import ui
from sandbox.events.encode_row import RowEncoder, fields_of
from sandbox.events.fields import InvalidValue, shown
from sandbox.events.file_rows import Row, Table, read_table
from sandbox.events.matching import Matching, listed
from sandbox.events.produce import INTERRUPTED, progress
from sandbox.events.replay_rows import TABLES, FileFormat, replay_rows
from sandbox.events.sender import StreamProducer, check_delivery
from sandbox.settings import load_home
from sandbox.streams import STREAMS, Stream
from sandbox.streams.timeline import ON_TIME, Record
from sandbox.streams.times import instant_micros
from spark_ingest.drafts.text_file import not_utf8, open_text
from spark_ingest.errors import ConfigurationError

_NOW = -1
_FURTHEST_AHEAD_MILLIS = 3_600_000


@dataclass
class Replay:
    """The records that a table's rows make, and the rows that make none.

    Attributes:
        stream: Whose records.
        timestamps: Column that is the Kafka timestamp, or a field of ``constants``; None
            for the time of sending.
        columns: Which column or JSON name a field is, where they are not named alike.
        constants: What a field is in every row, as text or null; whatever the row says.
        refused: How many rows were refused; each is told on standard error.
        read: How many rows there were.
    """

    stream: Stream
    table: Table
    timestamps: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str | None] = field(default_factory=dict)
    refused: int = 0
    read: int = 0
    _matching: Matching = field(init=False)

    def __post_init__(self) -> None:
        """Check the options, and the header when there is one.

        Raises:
            ConfigurationError: An option names no field or column, or gives what the field
                cannot be, or a column is missing.
        """
        self._matching = Matching(
            self.stream.name, fields_of(self.stream), self.columns, self.constants
        )
        header = self.table.columns
        self._matching.check(header)
        if not header:
            return
        if self.timestamps is not None and self.timestamps not in self.constants:
            alike = [name for name in header if name.lower() == self.timestamps.lower()]
            if not alike:
                raise ConfigurationError(
                    f"--timestamps {self.timestamps}: the file has no such column;"
                    f" it has: {listed(header)}"
                )
            if self.timestamps not in alike:
                self.timestamps = alike[0]
        self._matching.note_unused(header, (self.timestamps,))

    def records(self, encoder: RowEncoder) -> Iterator[Record]:
        """The rows as records; what does not fit is told and counted."""
        for row in self.table.rows:
            self.read += 1
            try:
                yield self._record(row, encoder)
            except InvalidValue as invalid:
                self.refused += 1
                ui.say(f"line {row.line}: {invalid}")

    def _record(self, row: Row, encoder: RowEncoder) -> Record:
        key, value = encoder.encode(self._matching.values(row, (self.timestamps,)))
        return Record(key, value, self._timestamp(row.values), ON_TIME)

    def _timestamp(self, values: dict[str, Any]) -> int:
        if self.timestamps is None:
            return _NOW
        given = self.constants if self.timestamps in self.constants else values
        written = given.get(self.timestamps)
        if written is None:
            raise InvalidValue(f"{self.timestamps} is empty, and it is the Kafka timestamp")
        try:
            millis = instant_micros(written) // 1_000
        except ValueError as error:
            raise InvalidValue(f"{self.timestamps} {shown(written)} {error}") from error
        if millis < 0:
            raise InvalidValue(
                f"{self.timestamps} {shown(written)} is before 1970,"
                " and Kafka has no such timestamps"
            )
        if millis > time.time_ns() // 1_000_000 + _FURTHEST_AHEAD_MILLIS:
            raise InvalidValue(
                f"{self.timestamps} {shown(written)} is more than an hour ahead,"
                " and Kafka refuses such timestamps"
            )
        return millis


Timestamps = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that becomes the Kafka timestamp. Default: the time of sending.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates the cells ('\\t' is a tab). Default: found out.")
]


def replay(
    file: Annotated[
        Path,
        typer.Argument(help="CSV with a header, or JSON, UTF-8; packed when its name ends in .gz."),
    ],
    stream: Annotated[
        str | None, typer.Option(help=f"Which stream it becomes: {', '.join(STREAMS)}.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="DATABASE.TABLE",
            help=f"Which table it is written to instead: {', '.join(TABLES)}.",
        ),
    ] = None,
    timestamps: Timestamps = None,
    delimiter: Delimiter = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN",
            help="The column, or JSON name, that is a field of the stream. Repeatable."
            " Default: the one of that name, whatever its case and underscores.",
        ),
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="What a field is in every row, whatever the file says; nothing is null."
            " Repeatable.",
        ),
    ] = None,
    null: Annotated[
        str, typer.Option(metavar="TEXT", help="The CSV cell that is null. Default: the empty one.")
    ] = "",
) -> None:
    r"""Send your own rows to a stream, as Avro by its schema, or to a database's table.

    CSV by its column names, any delimiter; JSON as an array of objects or one
    object after the other. A row that does not fit is reported with its line
    and the reason, and the others are sent. An empty CSV cell is null. Columns
    that the stream does not have are ignored. A record whose key field is null
    has no key.

    A table of a database (`sandbox up cdc`) takes the rows in transactions of
    500: a row with a new key comes, one with a known key is written over, in the
    columns that the file has. A CSV for a table may have no header: its cells
    are the table's columns, from the first on. Returns when the connector has
    passed them.

    Times may be `2021-05-10 13:04:06.996577+00`, `... +00:00`, ISO 8601, or
    numbers since 1970 in seconds to nanoseconds; without a zone they are UTC.
    What is finer than the stream keeps (milliseconds, or microseconds) is cut
    off. Examples:

        sandbox replay sales.csv --stream pagila.sales
        sandbox replay sales.csv --stream pagila.sales --timestamps payment_date
        sandbox replay day.json --stream smoothies.purchases
        sandbox replay menu.csv --stream smoothies.products \
            --column product_id=ID --set event_time=2026-01-05T08:00Z
        sandbox replay artists.txt.gz --table moma.artists --delimiter "|"
        sandbox replay film.dat --table pagila.film --delimiter tab --null "\N"

    Exit codes: 0 every row was sent, 1 some were not, 2 wrong use or no
    services.
    """
    if (stream is None) == (table is None):
        raise ConfigurationError(
            "say where the rows go: `--stream STREAM` or `--table DATABASE.TABLE`"
        )
    columns = _pairs("--column", column)
    # As in a CSV cell: nothing is null.
    constants = {n: v or None for n, v in _pairs("--set", constant).items()}
    file_format = FileFormat(delimiter, null, columns, constants)
    if table is not None:
        _to_table(file, table, file_format, timestamps)
        return
    if stream not in STREAMS:
        raise ConfigurationError(
            f"--stream {stream}: there is no such stream; known: {', '.join(STREAMS)}"
        )
    chosen = STREAMS[stream]
    with open_text(file) as text:
        try:
            send_rows(chosen, text, str(file), file_format, timestamps)
        except UnicodeDecodeError as error:
            not_utf8(str(file), error)


def send_rows(
    stream: Stream, text: TextIO, name: str, file_format: FileFormat, timestamps: str | None
) -> None:
    """Send a file's rows to a stream, and tell what became of them.

    ``text`` is at its beginning, and errors call it ``name``; ``timestamps`` is the column that
    is the Kafka timestamp, None for the time of sending.

    Raises:
        ConfigurationError: The file cannot be used, or the topic is not there.
        ServiceUnavailable: Broker or registry do not answer.
        DeliveryFailed: The broker did not take everything.
        typer.Exit: Some rows were refused, or a person stopped it.
    """
    names = [known.name for known in fields_of(stream)] + [*file_format.columns.values()]
    found = read_table(text, name, names, file_format.delimiter, file_format.null)
    rows = Replay(stream, found, timestamps, file_format.columns, file_format.constants)
    producer = StreamProducer(load_home(), stream)
    encoder = RowEncoder(stream, *producer.schema_ids[stream.name])
    with progress(f"replaying to {stream.topic}", None) as on_progress:
        report = producer.send(rows.records(encoder), None, on_progress)
    ui.echo(
        f"{report.delivered:,} of {rows.read:,} rows to {stream.topic}"
        f" in {report.seconds:.1f} s, {rows.refused:,} refused"
    )
    check_delivery(stream, report)
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)
    if rows.refused:
        raise typer.Exit(1)


def _to_table(file: Path, table: str, file_format: FileFormat, timestamps: str | None) -> None:
    if timestamps is not None:
        raise ConfigurationError("--timestamps belongs to --stream: a table has none")
    with open_text(file) as text:
        try:
            done = replay_rows(load_home(), table, text, str(file), file_format)
        except UnicodeDecodeError as error:
            not_utf8(str(file), error)
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)
    if done.refused:
        raise typer.Exit(1)


def _pairs(option: str, written: list[str] | None) -> dict[str, str]:
    """``NAME=VALUE``, each name once.

    Raises:
        ConfigurationError: Written otherwise, or a name stands there twice.
    """
    pairs: dict[str, str] = {}
    for pair in written or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{option} {pair}: write it as FIELD=...")
        if name in pairs:
            raise ConfigurationError(f"{option} {pair}: {name} has a value already")
        pairs[name] = value
    return pairs
