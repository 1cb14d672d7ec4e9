"""Consistent reads of the lake's tables, without a JVM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

NAME = "lake"
FILL = "`make demo` fills it"
# Tables of a page that are loaded concurrently.
_AT_ONCE = 8
# For a page whose files are removed while it reads.
_LOOKS = 3


class LakeIsEmpty(Exception):
    """There is no catalog yet; the message has the command that creates it."""


@dataclass(frozen=True)
class Look:
    """Some tables, each pinned to its current snapshot at one moment.

    Attributes:
        tables: By name, such as ``marts.fct_rental_sales``; those that do not exist are absent.
    """

    tables: Mapping[str, Table]

    @property
    def newest_at(self) -> datetime | None:
        """Commit time of the newest snapshot, UTC; None if there is none."""
        found = (table.current_snapshot() for table in self.tables.values())
        times = [snapshot.timestamp_ms for snapshot in found if snapshot]
        return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None

    def versions(self) -> tuple[str, ...]:
        """A key that differs if the rows may differ."""
        return tuple(sorted(table.metadata_location for table in self.tables.values()))


def open_catalog() -> Catalog:
    """The catalog ``lake`` of PyIceberg's configuration, by default that of the sandbox.

    https://py.iceberg.apache.org/configuration names the files and variables that PyIceberg
    reads, such as ``PYICEBERG_CATALOG__LAKE__URI``. The sandbox's folder is ``SANDBOX_HOME``.

    Raises:
        LakeIsEmpty: Nothing is configured, and the sandbox has no lake yet.
    """
    if Config().get_catalog_config(NAME):
        return load_catalog(NAME)
    folder = Path(os.environ.get("SANDBOX_HOME") or ".sandbox").resolve() / "lake"
    file = folder / "catalog.db"
    if not file.exists():
        raise LakeIsEmpty(f"There is no lake at {folder} yet: {FILL}.")
    return load_catalog(
        NAME,
        type="sql",
        uri=f"sqlite:///file:{file}?mode=ro&uri=true",
        warehouse=str(folder / "warehouse"),
        init_catalog_tables="false",
    )


def look_at(catalog: Catalog, names: Iterable[str]) -> Look:
    """Load the current snapshots of the tables, concurrently."""
    wanted = sorted(set(names))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda name: _load(catalog, name), wanted)
        tables = dict(zip(wanted, found, strict=True))
    return Look({name: table for name, table in tables.items() if table is not None})


def show_at_a_look(look: Callable[[], Look], show: Callable[[Look], None]) -> None:
    """Read from the current snapshots, and retry with newer ones if a file was removed.

    Maintenance removes files of expired snapshots, and a recreated table has other files.

    Args:
        look: Loads the current snapshots.
        show: Reads them; a retry replaces all that it showed.

    Raises:
        FileNotFoundError: A file of a current snapshot is missing: the lake is damaged.
    """
    for _ in range(_LOOKS - 1):
        try:
            show(look())
        except FileNotFoundError:
            continue
        return
    show(look())


def _load(catalog: Catalog, name: str) -> Table | None:
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        return None
