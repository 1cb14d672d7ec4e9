"""What a lake is doing now, seen from outside: its catalog, metadata files and data folders.

Reads Iceberg's own files, without Spark, often enough to see between two of its commits.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sandbox.settings import Home


class Moments:
    """Watches one bronze table, quarantine and the commit log of a sandbox's lake."""

    def __init__(self, home: Home, table: str) -> None:
        """Watch a table.

        Args:
            home: The sandbox.
            table: ``schema.name``.
        """
        self._catalog = home.lake / "catalog.db"
        self._table = table
        self._read: dict[str, tuple[str, dict[str, Any]]] = {}

    def wait(self, moment: Callable[[], bool], seconds: float = 240) -> None:
        """Return as soon as a moment has come.

        Raises:
            AssertionError: It did not come in time.
        """
        deadline = time.monotonic() + seconds
        while not moment():
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.002)

    def begin(self) -> Begun:
        """Look at everything as it is now, to find out later what is new."""
        return Begun(self)

    def metadata(self, table: str) -> dict[str, Any]:
        """An Iceberg table's metadata, read again where it changed; empty for no table."""
        schema, _, name = table.partition(".")
        with closing(sqlite3.connect(self._catalog, timeout=30)) as connection:
            row = connection.execute(
                "select metadata_location from iceberg_tables "
                "where table_namespace = ? and table_name = ?",
                (schema, name),
            ).fetchone()
        if row is None:
            return {}
        location = str(row[0]).removeprefix("file:")
        known = self._read.get(table)
        if known is not None and known[0] == location:
            return known[1]
        found: dict[str, Any] = json.loads(Path(location).read_text())
        self._read[table] = (location, found)
        return found

    def main(self) -> int | None:
        """The table's current snapshot."""
        return _head(self.metadata(self._table), "main")

    def staged(self) -> set[int]:
        """Heads of writers' branches."""
        refs = self.metadata(self._table).get("refs", {})
        return {ref["snapshot-id"] for name, ref in refs.items() if name.startswith("writer_")}

    def writer(self) -> str | None:
        """Who holds the table's lease, as text."""
        properties = self.metadata(self._table).get("properties", {})
        held: str | None = properties.get("millrace.writer")
        return held

    def quarantine(self) -> int | None:
        """Quarantine's current snapshot."""
        return _head(self.metadata("bronze.quarantine"), "main")

    def operation(self, table: str) -> str | None:
        """What the newest snapshot of a table is: append, delete, replace, overwrite."""
        metadata = self.metadata(table)
        newest = _head(metadata, "main")
        for snapshot in metadata.get("snapshots", []):
            if snapshot["snapshot-id"] == newest:
                return str(snapshot["summary"]["operation"])
        return None

    def data_files(self) -> int:
        """Parquet files of the table, written or being written."""
        location = self.metadata(self._table).get("location")
        if location is None:
            return 0
        folder = Path(str(location).removeprefix("file:")) / "data"
        return sum(1 for _ in folder.rglob("*.parquet"))


class Begun:
    """The moments of a batch, distinguished from where it begins."""

    def __init__(self, moments: Moments) -> None:
        self._now = moments
        self._main = moments.main()
        self._staged = moments.staged()
        self._quarantine = moments.quarantine()
        self._files = moments.data_files()

    def reads(self) -> bool:
        """A data file grows: Kafka is being read, and nothing is staged."""
        return self._now.data_files() > self._files

    def writes(self) -> bool:
        """A data file is there, and no commit has it."""
        return self.reads() and not self.main_has_moved()

    def staged(self) -> bool:
        """The batch's files are on the writer's branch, and ``main`` has not moved."""
        heads = self._now.staged() - self._staged - {self._main, None}
        return bool(heads) and self._now.main() == self._main

    def set_aside(self) -> bool:
        """Quarantine has the batch's bad records, and ``main`` has not moved."""
        return self._now.quarantine() != self._quarantine

    def published(self) -> bool:
        """``main`` has moved; the commit log is not written yet."""
        return self._now.main() != self._main

    def main_has_moved(self) -> bool:
        """Whether the batch counts."""
        return self._now.main() != self._main


def _head(metadata: dict[str, Any], branch: str) -> int | None:
    ref = metadata.get("refs", {}).get(branch)
    return None if ref is None else int(ref["snapshot-id"])
