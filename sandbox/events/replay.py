"""`sandbox replay`: a person's own CSV or JSON rows as records of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from sandbox import ui
from sandbox.events.encode_row import Field, Fitter, Misfit, fields_of, shown
from sandbox.events.file_rows import Row, Table, bare, not_utf8, open_text, read_table
from sandbox.events.produce import progress
from sandbox.events.sender import Outlet, check_delivery
from sandbox.events.times import instant_micros
from sandbox.settings import load_home
from sandbox.streams import STREAMS, Stream
from sandbox.streams.timeline import ON_TIME, Record
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
    _fields: list[Field] = field(default_factory=list)
    # The names of the row before, and which of them each field is: rows are mostly alike.
    _names: tuple[str, ...] = ()
    _matched: dict[str, str] = field(default_factory=dict)
    _noted: bool = False

    def __post_init__(self) -> None:
        """Check the options, and the header when there is one.

        Raises:
            ConfigurationError: An option names no field or column, or gives what the field
                cannot be, or a column is missing.
        """
        self._fields = fields_of(self.stream)
        known = {one.name: one for one in self._fields}
        for name in (*self.columns, *self.constants):
            if name not in known:
                option = "--column" if name in self.columns else "--set"
                raise ConfigurationError(
                    f"{option} {name}: {self.stream.name} has no such field;"
                    f" it has: {_listed([*known])}"
                )
        for name in self.constants:
            try:
                known[name].fitted(self.constants)
            except Misfit as misfit:
                raise ConfigurationError(f"--set {misfit}") from misfit
        header = self.table.columns
        if not header:
            return
        for name, column in self.columns.items():
            if column not in header:
                raise ConfigurationError(
                    f"--column {name}={column}: the file has no such column;"
                    f" it has: {_listed(header)}"
                )
        self._match(tuple(header))
        found = {*self._matched, *self.constants}
        for wanted in self._fields:
            if wanted.required and wanted.name not in found:
                raise ConfigurationError(
                    f"column {wanted.name} is missing; {self.stream.name} needs it,"
                    f" and the file has: {_listed(header)}; `--column"
                    f" {wanted.name}=COLUMN` names another, `--set {wanted.name}=VALUE`"
                    " gives every row the same"
                )
        if self.timestamps is not None and self.timestamps not in self.constants:
            alike = [name for name in header if name.lower() == self.timestamps.lower()]
            if not alike:
                raise ConfigurationError(
                    f"--timestamps {self.timestamps}: the file has no such column;"
                    f" it has: {_listed(header)}"
                )
            if self.timestamps not in alike:
                self.timestamps = alike[0]
        self._note_unused(header)

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
        names = tuple(row.values)
        if names != self._names:
            self._match(names)
            self._note_unused(names)
        values = {known: row.values[name] for known, name in self._matched.items()}
        key, value = fitter.fit({**values, **self.constants})
        return Record(key, value, self._timestamp(row.values), ON_TIME)

    def _match(self, names: tuple[str, ...]) -> None:
        """Find out which field each name of a row is.

        As ``columns`` says; else the name that is alike, or alike but for upper and lower
        case, or for ``_``, ``-`` and blanks too: ``ProductId`` is ``product_id``. A name
        that begins with ``_`` is somebody's own and is taken by ``columns`` alone, or when
        it is exactly alike.
        """
        self._names, self._matched = names, {}
        public = [name for name in names if not name.startswith("_")]
        lower = {name.lower(): name for name in public}
        separated = {bare(name): name for name in public}
        own = set(self.columns.values())
        for known in (one.name for one in self._fields):
            name = self.columns.get(known)
            if name is None:
                likely = (known, lower.get(known.lower()), separated.get(bare(known)))
                name = next((n for n in likely if n in names and n not in own), None)
            if name in names and name is not None:
                self._matched[known] = name

    def _note_unused(self, names: Iterable[str]) -> None:
        """Say once which columns are not the stream's."""
        used = {*self._matched.values(), self.timestamps}
        unused = [name or "(no name)" for name in names if name not in used]
        if unused and not self._noted:
            self._noted = True
            ui.say(
                f"note: {self.stream.name} has no such columns, they are ignored:"
                f" {_listed(unused)}"
            )

    def _timestamp(self, values: dict[str, Any]) -> int:
        if self.timestamps is None:
            return _NOW
        given = self.constants if self.timestamps in self.constants else values
        written = given.get(self.timestamps)
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
) -> None:
    r"""Send your own rows to a stream, as Avro by its schema.

    CSV by its column names, any delimiter; JSON as an array of objects or one
    object after the other. A row that does not fit is reported with its line
    and the reason, and the others are sent. An empty CSV cell is null. Columns
    that the stream does not have are ignored. A record whose key field is null has
    no key.

    Times may be `2021-05-10 13:04:06.996577+00`, `... +00:00`, ISO 8601, or
    numbers since 1970 in seconds to nanoseconds; without a zone they are UTC.
    What is finer than the stream keeps (milliseconds, or microseconds) is cut
    off. Examples:

        sandbox replay sales.csv --stream pagila.sales
        sandbox replay sales.csv --stream pagila.sales --timestamps payment_date
        sandbox replay day.json --stream smoothies.purchases
        sandbox replay menu.csv --stream smoothies.products \
            --column product_id=ID --set event_time=2026-01-05T08:00Z

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
            columns = _pairs("--column", column)
            # As in a CSV cell: nothing is null.
            constants = {n: v or None for n, v in _pairs("--set", constant).items()}
            names = [known.name for known in fields_of(chosen)] + [*columns.values()]
            table = read_table(text, str(file), names, delimiter)
            rows = Replay(chosen, table, timestamps, columns, constants)
            outlet = Outlet(load_home(), chosen)
            fitter = Fitter(chosen, *outlet.schema_ids[chosen.name])
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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
