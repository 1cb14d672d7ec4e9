"""TICKIT's published files, replayed into the ticket shop's databases, to the mart of events.

Fails when a cell of ``dim_events`` is not what DuckDB makes of the files themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import duckdb
import pytest

from sandbox.databases.known import DATABASES
from sandbox.services.mariadb import MARIADB
from tests.python.conftest import Stack, own_stack

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(MARIADB.lacks_platform() is not None, reason="no MariaDB for this machine"),
]

REAL_DATA = os.environ.get("MILLRACE_REAL_DATA", "")
# By table of a database, its published file, and the file's columns.
FILES = {
    "ems.category": ("category_pipe.txt", "catid int, catgroup text, catname text, catdesc text"),
    "ems.venue": (
        "venue_pipe.txt",
        "venueid int, venuename text, venuecity text, venuestate text, venueseats int",
    ),
    "ems.event": (
        "allevents_pipe.txt",
        ("eventid int, venueid int, catid int, dateid int, eventname text, starttime timestamp"),
    ),
    "ecomm.date": (
        "date2008_pipe.txt",
        (
            "dateid int, caldate date, day text, week int, month text, qtr text,"
            " year int, holiday boolean"
        ),
    ),
}
COLUMNS = (
    "event_id, venue_id, category_id, date_id, event_name, venue_name, venue_city,"
    " venue_state, category_group, category_name, category_description, seat_count,"
    " quarter_number, week_number, is_holiday,"
)
EXPECTED = """
    select
        eventid, event.venueid, event.catid, event.dateid, eventname, venuename,
        venuecity, rtrim(venuestate), catgroup, catname, catdesc, venueseats,
        quarter(caldate), week, coalesce(holiday, false),
        strftime(starttime, '%Y-%m-%d %H:%M:%S')
    from event
    left join venue on event.venueid = venue.venueid
    left join category on event.catid = category.catid
    left join date on event.dateid = date.dateid
    order by eventid
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """The databases of the ticket shop, empty, and what captures them."""
    path = tmp_path / "sand box"
    target = str(path.resolve() / "target")
    with own_stack(path, "kafka", "registry", "cdc", DBT_TARGET_PATH=target) as found:
        yield found


def made_files(folder: Path) -> Path:
    """Files in the form of the published ones: no header, cells between bars."""
    folder.mkdir()
    for table, (file, described) in FILES.items():
        name, _, of = table.partition(".")
        columns = [column.split()[0] for column in described.split(",")]
        rows = (row for found, row in DATABASES[name].rows(1, 10) if found == of)
        lines = [
            "|".join("" if row[one] is None else str(row[one]) for one in columns)
            for row in islice(rows, 400)
        ]
        (folder / file).write_text("".join(f"{line}\n" for line in lines))
    return folder


def expected(folder: Path) -> list[list[object]]:
    """The rows of ``dim_events``, as DuckDB makes them of the files."""
    engine = duckdb.connect()
    for table, (file, columns) in FILES.items():
        name = table.partition(".")[2]
        engine.execute(f'create table "{name}" ({columns})')
        engine.execute(f"copy \"{name}\" from '{folder / file}' (delimiter '|', header false)")
    return [list(row) for row in engine.execute(EXPECTED).fetchall()]


@pytest.mark.parametrize(
    "real",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not all(Path(REAL_DATA or "absent", file).exists() for file, _ in FILES.values()),
                reason="MILLRACE_REAL_DATA names no folder with TICKIT's files",
            ),
        ),
    ],
    ids=["made", "published"],
)
def test_replayed_files_are_the_events_that_they_say(
    stack: Stack, tmp_path: Path, *, real: bool
) -> None:
    folder = Path(REAL_DATA).resolve() if real else made_files(tmp_path / "files")

    for table, (file, _) in FILES.items():
        stack.run("sandbox", "replay", str(folder / file), "--table", table)
    stack.run("spark-ingest", "run", "tickit", "--once")
    stack.run(
        *("dbt", "build", "--select", "+dim_events"),
        *("--exclude-resource-type", "test", "unit_test"),
    )

    said = stack.run(
        *("sandbox", "sql", "--format", "json"),
        f"select {COLUMNS} date_format(starts_at, 'yyyy-MM-dd HH:mm:ss') as starts_at"
        " from marts.dim_events order by event_id",
    ).stdout
    found = [list(row.values()) for row in json.loads(said)]
    assert found
    assert found == expected(folder)
