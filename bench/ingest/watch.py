"""Watch an Iceberg table as a reader of it would: by its newest metadata in the catalog."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

_WHERE = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"


@dataclass(frozen=True)
class Seen:
    """A state of a table, and when a reader could first see it.

    Attributes:
        at: Seconds since 1970.
        snapshot_id: The newest snapshot; None while there is none.
        records: Rows of the table by then.
        summary: What the snapshot says of itself.
    """

    at: float
    snapshot_id: int | None
    records: int
    summary: dict[str, str] = field(default_factory=dict)


def metadata(catalog: Path, table: str) -> dict[str, Any] | None:
    """The newest metadata of a table in a JDBC catalog of one SQLite file.

    Args:
        catalog: The file.
        table: ``schema.name``.

    Returns:
        None where there is no such table yet.
    """
    location = _location(catalog, table)
    return None if location is None else _read(location)


def metadata_file(catalog: Path, table: str) -> Path | None:
    """The file of :func:`metadata`."""
    location = _location(catalog, table)
    return None if location is None else path_of(location)


def path_of(location: str) -> Path:
    """The file of a location in the metadata of a local lake."""
    parts = urlsplit(location)
    return Path(unquote(parts.path) if parts.scheme and "%" in parts.path else parts.path)


def commit_count(catalog: Path) -> int:
    """The number of commits to all tables, from the version in the name of each one's metadata."""
    with closing(sqlite3.connect(catalog)) as database:
        found = database.execute("select metadata_location from iceberg_tables").fetchall()
    return sum(int(Path(location).name.partition("-")[0]) for (location,) in found)


def record_count(found: dict[str, Any] | None) -> int:
    """Rows of a table by its metadata; 0 where there is none."""
    return _seen(found, 0.0).records


def columns(found: dict[str, Any] | None) -> set[str]:
    """Names of a table's columns, those inside structs as ``outer.inner``."""
    return set(_names(_fields(found), ""))


def numbered_times(found: dict[str, Any] | None, times: list[str]) -> frozenset[str]:
    """Which of some columns, that should be times, are numbers in a table.

    Args:
        found: Its metadata.
        times: Their names.
    """
    return frozenset(
        field["name"]
        for field in _fields(found)
        if field["name"] in times and field["type"] in ("int", "long")
    )


class Watch:
    """Looks at a table now and then, until it is stopped.

    Args:
        catalog: The SQLite file of its catalog.
        table: ``schema.name``; need not be there yet.
        every: Seconds between two looks.
    """

    def __init__(self, catalog: Path, table: str, every: float) -> None:
        self._catalog = catalog
        self._table = table
        self._every = every
        self.seen: list[Seen] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def records(self) -> int:
        """Rows of the table when it was looked at last."""
        return self.seen[-1].records if self.seen else 0

    def stop(self) -> list[Seen]:
        """Look once more, then no more; every state that was seen, in order."""
        self._ended.set()
        self._thread.join()
        return self.seen

    def _watch(self) -> None:
        last: str | None = None
        snapshot: int | None = None
        while True:
            ended = self._ended.is_set()
            location = _location(self._catalog, self._table)
            if location is not None and location != last:
                last = location
                found = _read(location)
                state = _seen(found, time.time())
                # Leases, branches and properties change the metadata, not what is to see.
                if found is not None and state.snapshot_id != snapshot:
                    snapshot = state.snapshot_id
                    self.seen.append(state)
            if ended:
                return
            self._ended.wait(self._every)


def _location(catalog: Path, table: str) -> str | None:
    schema, _, name = table.partition(".")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(catalog))}?mode=ro", uri=True)) as file:
            row = file.execute(_WHERE, (schema, name)).fetchone()
    except sqlite3.OperationalError:
        # There is no catalog yet, or it is being made.
        return None
    return None if row is None else str(row[0])


def _read(location: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path_of(location).read_text())
    except FileNotFoundError:
        # Removed as an old one in this very moment: a newer one is there.
        return None
    return found


def _seen(found: dict[str, Any] | None, at: float) -> Seen:
    current = None if found is None else found.get("current-snapshot-id")
    if found is None or current in (None, -1):
        return Seen(at, None, 0)
    snapshot = next(s for s in found["snapshots"] if s["snapshot-id"] == current)
    summary = snapshot["summary"]
    return Seen(at, current, int(summary.get("total-records", 0)), summary)


def _fields(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    current = found["current-schema-id"]
    schema = next(s for s in found["schemas"] if s["schema-id"] == current)
    fields: list[dict[str, Any]] = schema["fields"]
    return fields


def _names(fields: list[dict[str, Any]], outer: str) -> list[str]:
    names = []
    for each in fields:
        names.append(outer + each["name"])
        kind = each["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            names += _names(kind["fields"], f"{outer}{each['name']}.")
    return names
