"""`sandbox replay`: rows of a CSV or JSON file as records of a stream."""

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
    """Converts the rows of a file to records, and counts invalid rows.

    Attributes:
        stream: The target stream.
        timestamps: Column of the Kafka timestamp, or a field of ``constants``; None for the
            time of sending.
        columns: Column or JSON name by field, where the names differ.
        constants: Value by field, as text or null, for every row; overrides the row.
        refused: Number of invalid rows; each is reported on standard error.
        read: Number of rows read.
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
            ConfigurationError: An option has an unknown field or column or an invalid value,
                or a column is missing.
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
        """The rows as records; invalid rows are reported and counted."""
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
                " and Kafka rejects such timestamps"
            )
        return millis


Timestamps = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column for the Kafka timestamp. Default: the time of sending.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Cell delimiter ('\\t' is a tab). Default: detected.")
]


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV with a header, or JSON, UTF-8; gzip-compressed if it ends in .gz."
        ),
    ],
    stream: Annotated[
        str | None, typer.Option(help=f"The target stream: {', '.join(STREAMS)}.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="DATABASE.TABLE",
            help=f"The target table, instead of a stream: {', '.join(TABLES)}.",
        ),
    ] = None,
    timestamps: Timestamps = None,
    delimiter: Delimiter = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN",
            help="The column, or JSON name, of a field of the stream. Repeatable."
            " Default: the same name, ignoring case and underscores.",
        ),
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="A constant value of a field, which overrides the file; an empty value is"
            " null. Repeatable.",
        ),
    ] = None,
    null: Annotated[
        str,
        typer.Option(metavar="TEXT", help="The CSV cell value that means null. Default: empty."),
    ] = "",
) -> None:
    r"""Send rows of a file to a stream, as Avro with its schema, or to a database table.

    CSV is matched by column names, with any delimiter; JSON is an array or a
    sequence of objects. An invalid row is reported with its line and the reason,
    and the others are sent. An empty CSV cell is null. Unknown columns are
    ignored. A record whose key field is null has no key.

    Rows are upserted into a database table (`sandbox up cdc`) in transactions of
    500: a row with a new key is inserted, one with an existing key is updated in
    the columns of the file. A CSV for a table may have no header: its cells are
    then the table's columns in order. Returns when the connector has processed
    them.

    Timestamps may be `2021-05-10 13:04:06.996577+00`, `... +00:00`, ISO 8601, or
    epoch numbers in seconds to nanoseconds; the default time zone is UTC. They
    are truncated to the precision of the stream (milliseconds or microseconds).
    For example:

        sandbox replay sales.csv --stream pagila.sales
        sandbox replay sales.csv --stream pagila.sales --timestamps payment_date
        sandbox replay day.json --stream smoothies.purchases
        sandbox replay menu.csv --stream smoothies.products \
            --column product_id=ID --set event_time=2026-01-05T08:00Z
        sandbox replay artists.txt.gz --table moma.artists --delimiter "|"
        sandbox replay film.dat --table pagila.film --delimiter tab --null "\N"

    Exit codes: 0 all rows sent, 1 some rows not sent, 2 usage error or services
    down.
    """
    if (stream is None) == (table is None):
        raise ConfigurationError("choose a target: `--stream STREAM` or `--table DATABASE.TABLE`")
    columns = _pairs("--column", column)
    # As in a CSV cell, an empty value is null.
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
    """Send the rows of a file to a stream, and report the result.

    ``text`` is the file at its beginning, ``name`` its name in errors; ``timestamps`` is the
    column of the Kafka timestamp, None for the time of sending.

    Raises:
        ConfigurationError: The file is invalid, or the topic does not exist.
        ServiceUnavailable: Broker or registry is down.
        DeliveryFailed: Some records were not delivered.
        typer.Exit: Some rows were invalid, or it was stopped by Ctrl-C.
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
    """Parse ``NAME=VALUE`` options.

    Raises:
        ConfigurationError: Invalid syntax, or a duplicate name.
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
