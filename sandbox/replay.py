"""`sandbox replay`: a person's own CSV or JSON rows as records of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from sandbox import ui
from sandbox.fitting import Field, Fitter, Misfit, fields_of, shown
from sandbox.produce import progress
from sandbox.rows import Row, Table, not_utf8, open_text, read_table
from sandbox.sending import Outlet, check_delivery
from sandbox.settings import load_home
from sandbox.streams import STREAMS, Stream
from sandbox.streams.timeline import ON_TIME, Record
from sandbox.times import instant_micros
from spark_ingest.errors import ConfigurationError

_NOW = -1
_FURTHEST_AHEAD_MILLIS = 3_600_000
_INTERRUPTED = 130


@dataclass
class Replay:
    """The records that a table's rows make, and the rows that make none.

    Attributes:
        stream: Whose records.
        table: The rows.
        timestamps: Column that is the Kafka timestamp; None for the time of sending.
        refused: How many rows were refused; each is told on standard error.
        read: How many rows there were.
    """

    stream: Stream
    table: Table
    timestamps: str | None = None
    refused: int = 0
    read: int = 0
    _names: dict[str, str] = field(default_factory=dict)
    _fields: list[Field] = field(default_factory=list)
    _noted: bool = False

    def __post_init__(self) -> None:
        """Check the header, when there is one.

        Raises:
            ConfigurationError: A required column, or that of the timestamps, is missing.
        """
        self._fields = fields_of(self.stream)
        columns = self.table.columns
        if not columns:
            return
        by_name = {name.lower(): name for name in columns} | {
            name: name for name in columns
        }
        for wanted in self._fields:
            column = by_name.get(wanted.name, by_name.get(wanted.name.lower()))
            if column is not None:
                self._names[column] = wanted.name
            elif wanted.required:
                raise ConfigurationError(
                    f"column {wanted.name} is missing; {self.stream.name} needs it,"
                    f" and the file has: {_listed(columns)}"
                )
        if self.timestamps is not None:
            found = by_name.get(self.timestamps, by_name.get(self.timestamps.lower()))
            if found is None:
                raise ConfigurationError(
                    f"--timestamps {self.timestamps}: the file has no such column;"
                    f" it has: {_listed(columns)}"
                )
            self.timestamps = found
        self._note_unused(columns)

    def records(self, fitter: Fitter) -> Iterator[Record]:
        """The rows as records; what does not fit is told and counted."""
        for row in self.table.rows:
            self.read += 1
            try:
                yield self._record(row, fitter)
            except Misfit as misfit:
                self.refused += 1
                ui.say(f"line {row.line}: {misfit}")

    def _record(self, row: Row, fitter: Fitter) -> Record:
        if row.fault:
            raise Misfit(row.fault)
        values = row.values
        if not self.table.columns:
            self._note_unused(values)
        else:
            values = {name: values[column] for column, name in self._names.items()}
        key, value = fitter.fit(values)
        return Record(key, value, self._timestamp(row.values), ON_TIME)

    def _note_unused(self, columns: Iterable[str]) -> None:
        """Say once which columns are not the stream's."""
        used = {known.name for known in self._fields} | {*self._names, self.timestamps}
        unused = [column or "(no name)" for column in columns if column not in used]
        if unused and not self._noted:
            self._noted = True
            ui.say(
                f"note: {self.stream.name} has no such columns, they are ignored:"
                f" {_listed(unused)}"
            )

    def _timestamp(self, values: dict[str, Any]) -> int:
        if self.timestamps is None:
            return _NOW
        written = values.get(self.timestamps)
        if written is None:
            raise Misfit(f"{self.timestamps} is empty, and it is the Kafka timestamp")
        try:
            millis = instant_micros(written) // 1_000
        except ValueError as error:
            raise Misfit(f"{self.timestamps} {shown(written)} {error}") from error
        if millis < 0:
            raise Misfit(
                f"{self.timestamps} {shown(written)} is before 1970,"
                " and Kafka has no such timestamps"
            )
        if millis > time.time_ns() // 1_000_000 + _FURTHEST_AHEAD_MILLIS:
            raise Misfit(
                f"{self.timestamps} {shown(written)} is more than an hour ahead,"
                " and Kafka refuses such timestamps"
            )
        return millis


def replay(
    file: Annotated[Path, typer.Argument(help="CSV with a header, or JSON. UTF-8.")],
    stream: Annotated[
        str, typer.Option(help=f"Which stream it becomes: {', '.join(STREAMS)}.")
    ],
    timestamps: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that becomes the Kafka timestamp. Default: the time of sending.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="What separates the cells ('\\t' is a tab). Default: found out."
        ),
    ] = None,
) -> None:
    """Send your own rows to a stream, as Avro by its schema.

    CSV by its column names, any delimiter; JSON as an array of objects or one
    object after the other. A row that does not fit is reported with its line
    and the reason, and the others are sent. An empty CSV cell is null. Columns
    that the stream has not are ignored.

    Times may be `2021-05-10 13:04:06.996577+00`, `... +00:00`, ISO 8601, or
    numbers since 1970 in seconds to nanoseconds; without a zone they are UTC.
    What is finer than the stream keeps (milliseconds) is cut off. Examples:

        sandbox replay sales.csv --stream pagila.sales
        sandbox replay sales.csv --stream pagila.sales --timestamps payment_date
        sandbox replay sales.jsonl --stream pagila.sales

    Exit codes: 0 every row was sent, 1 some were not, 2 wrong use or no
    services.
    """
    if stream not in STREAMS:
        raise ConfigurationError(
            f"--stream {stream}: there is no such stream; known: {', '.join(STREAMS)}"
        )
    chosen = STREAMS[stream]
    with open_text(file) as text:
        try:
            names = [known.name for known in fields_of(chosen)]
            rows = Replay(
                chosen, read_table(text, str(file), names, delimiter), timestamps
            )
            outlet = Outlet(load_home(), chosen)
            fitter = Fitter(chosen, outlet.key_schema_id, outlet.value_schema_id)
            with progress(f"replaying to {chosen.topic}", None) as on_progress:
                tally = outlet.send(rows.records(fitter), None, on_progress)
        except UnicodeDecodeError as error:
            not_utf8(str(file), error)
    ui.tell(
        f"{tally.delivered:,} of {rows.read:,} rows to {chosen.topic}"
        f" in {tally.seconds:.1f} s, {rows.refused:,} refused"
    )
    check_delivery(chosen, tally)
    if tally.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if rows.refused:
        raise typer.Exit(1)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
