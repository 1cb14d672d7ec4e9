"""The lake's tables as they are at one moment, read without a JVM."""

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
# Tables of a page that are asked for at once.
_AT_ONCE = 8
# Of a page whose files are removed while it reads.
_LOOKS = 3


class LakeIsEmpty(Exception):
    """There is no catalog yet; the message says which command makes it."""


@dataclass(frozen=True)
class Look:
    """Some tables, each at the snapshot that was its newest when the look began.

    Attributes:
        tables: By name, such as ``marts.fct_rental_sales``; those that do not exist are absent.
    """

    tables: Mapping[str, Table]

    @property
    def newest_at(self) -> datetime | None:
        """When the newest of the snapshots was committed, UTC; None without any."""
        found = (table.current_snapshot() for table in self.tables.values())
        times = [snapshot.timestamp_ms for snapshot in found if snapshot]
        return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None

    def versions(self) -> tuple[str, ...]:
        """What tells two looks apart whose rows may differ."""
        return tuple(sorted(table.metadata_location for table in self.tables.values()))


def open_catalog() -> Catalog:
    """The catalog ``lake`` of PyIceberg's configuration, or else that of the sandbox.

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
    """Load the tables' newest snapshots, all at once."""
    wanted = sorted(set(names))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda name: _load(catalog, name), wanted)
        tables = dict(zip(wanted, found, strict=True))
    return Look({name: table for name, table in tables.items() if table is not None})


def show_at_a_look(look: Callable[[], Look], show: Callable[[Look], None]) -> None:
    """Show what there is at a look, at a newer one where a file of the first is gone.

    Maintenance removes files of snapshots that are old, and a table that is made anew has others.

    Args:
        look: Takes a look.
        show: Reads it; called again, all that it showed is of the newer look.

    Raises:
        FileNotFoundError: A file of the newest snapshots is gone: the lake is damaged.
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
