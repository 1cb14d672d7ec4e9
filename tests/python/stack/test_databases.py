"""Real databases filled, changed and replayed to: what stands there is what was made.

Fails when a database differs from what its generator or a replayed file says.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox.databases import statements
from sandbox.databases.known import DATABASES, TICKIT
from sandbox.databases.run import run
from sandbox.databases.server import opened
from sandbox.databases.state import DatabaseState
from sandbox.databases.tables import Database, Row
from sandbox.databases.tickit.shop import LISTINGS
from sandbox.databases.transactions import transactions
from sandbox.events.produce_tickit import split
from sandbox.services import postgres
from sandbox.services import stack as services
from sandbox.settings import PROJECT
from tests.python.conftest import Stack, own_stack

pytestmark = pytest.mark.nightly

EVERY = pytest.mark.parametrize("name", DATABASES)
ALONE = pytest.mark.parametrize(
    "name", [name for name, database in DATABASES.items() if database not in TICKIT]
)
SANDBOX = str(Path(sys.executable).parent / "sandbox")
ROWS = 40


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A sandbox that captures all databases, for these tests alone."""
    with own_stack(tmp_path_factory.mktemp("data bases"), "kafka", "registry", "cdc") as found:
        yield found


def stored(stack: Stack, database: Database) -> dict[tuple[str, Any], Row]:
    """All rows of a database by table and key."""
    with opened(stack.home, database) as connection:
        return {
            (name, database.table(name).key_of(row)): row
            for name, row in statements.stored(database, connection)
        }


def produced(stack: Stack, database: Database, *options: str) -> dict[str, Any]:
    """What `sandbox produce` says of itself."""
    return said_of(stack, database.command, *options)


def said_of(stack: Stack, command: str, *options: str) -> dict[str, Any]:
    done = stack.run("sandbox", "produce", command, "--json", *options)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fill(stack: Stack, database: Database) -> None:
    """Let a database have rows."""
    size = ("--scale", str(ROWS / LISTINGS)) if database in TICKIT else ("--rows", str(ROWS))
    produced(stack, database, *size)


def rows_of(state: DatabaseState) -> dict[tuple[str, Any], Row]:
    """All rows of what a database should hold, by table and key."""
    return {
        (table.name, table.key_of(row)): row
        for table in state.database.tables
        for row in state.rows(table.name)
    }


@ALONE
def test_an_empty_database_is_filled_once(stack: Stack, name: str) -> None:
    database = DATABASES[name]

    first = produced(stack, database, "--rows", str(ROWS))
    made = stored(stack, database)
    second = produced(stack, database, "--rows", "7", "--seed", "2")

    wanted = {
        (table, database.table(table).key_of(row)): row for table, row in database.rows(1, ROWS)
    }
    assert made == wanted
    assert sum(first["rows_written"].values()) == len(wanted)
    assert second["rows_written"] == {}
    assert second["rows_before"] == first["rows_written"]
    assert stored(stack, database) == wanted


def test_the_ticket_shop_is_filled_once_and_changed_by_one_command(stack: Stack) -> None:
    scale = ROWS / LISTINGS
    first = said_of(stack, "tickit", "--scale", str(scale))
    wanted = {database.name: DatabaseState(database, database.rows(1, ROWS)) for database in TICKIT}
    made = {database.name: stored(stack, database) for database in TICKIT}
    assert made == {name: rows_of(state) for name, state in wanted.items()}

    again = said_of(stack, "tickit", "--changes", "200", "--seed", "4")

    assert again["changes"] == 200
    assert again["left_out"] == {}
    shares = split(200, [database.name for database in TICKIT])
    for database in TICKIT:
        found = again["databases"][database.name]
        assert found["rows_written"] == {}
        assert found["rows_before"] == first["databases"][database.name]["rows_written"]
        assert found["changes"] == shares[database.name]
        state = DatabaseState(
            database, ((table, row) for (table, _), row in made[database.name].items())
        )
        list(transactions(state, database.operations, 4, shares[database.name]))
        assert stored(stack, database) == rows_of(state)


@EVERY
def test_random_changes_leave_the_database_as_their_generator_says(stack: Stack, name: str) -> None:
    database = DATABASES[name]
    fill(stack, database)
    with opened(stack.home, database) as connection:
        state = DatabaseState(database, statements.stored(database, connection))
        operations = database.operations + database.truncates
        done = run(database, connection, transactions(state, operations, 3, 400))

    assert done.changes.total() == 400
    assert done.rolled_back > 0
    assert stored(stack, database) == rows_of(state)


@ALONE
def test_the_command_makes_the_changes_that_its_seed_says(stack: Stack, name: str) -> None:
    database = DATABASES[name]
    produced(stack, database, "--rows", str(ROWS))
    before = stored(stack, database)
    state = DatabaseState(database, ((table, row) for (table, _), row in before.items()))
    list(transactions(state, database.operations, 5, 60))

    said = produced(stack, database, "--changes", "60", "--seed", "5")

    assert said["changes"] == 60
    assert said["inserts"] + said["updates"] + said["deletes"] == 60
    assert stored(stack, database) == rows_of(state)


def test_an_update_that_leaves_a_long_description_alone_has_none_in_the_log(stack: Stack) -> None:
    script = "a b " * 3_000
    with closing(postgres.connect(stack.home, "pagila", postgres.ADMIN)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("select pg_create_logical_replication_slot('seen', 'pgoutput')")
        try:
            cursor.execute(
                "insert into film (film_id, title, description, language_id)"
                " values (-1, 'LONG', %s, 1)",
                (script,),
            )
            cursor.execute("update film set rental_rate = 0.99 where film_id = -1")
            cursor.execute("delete from film where film_id = -1")
            cursor.execute(
                "select chr(get_byte(data, 0)), length(data)"
                " from pg_logical_slot_get_binary_changes('seen', null, null,"
                " 'proto_version', '1', 'publication_names', 'captured')"
            )
            sizes = dict(cursor.fetchall())
        finally:
            cursor.execute("select pg_drop_replication_slot('seen')")
    assert sizes["I"] > len(script)
    assert sizes["U"] < 2_000
    # Of a deleted film the log has the key alone.
    assert sizes["D"] < 100


def test_ctrl_c_ends_between_two_transactions(stack: Stack) -> None:
    database = DATABASES["moma"]
    produced(stack, database, "--rows", str(ROWS))
    before = stored(stack, database)
    command = [SANDBOX, "produce", "moma", "--changes", "100000", "--seed", "9", "--json"]
    program = subprocess.Popen(
        command, cwd=PROJECT, env=stack.env, stdout=subprocess.PIPE, text=True
    )
    give_up = time.monotonic() + 60
    while stored(stack, database) == before and time.monotonic() < give_up:
        time.sleep(0.2)
    program.send_signal(signal.SIGINT)
    said = json.loads(program.communicate(timeout=120)[0])

    state = DatabaseState(database, ((table, row) for (table, _), row in before.items()))
    committed = 0
    for transaction in transactions(state, database.operations, 9, 100_000):
        committed += 0 if transaction.is_rolled_back else len(transaction.changes)
        if committed >= said["changes"]:
            break
    assert program.returncode == 130
    assert said["interrupted"]
    assert committed == said["changes"]
    assert stored(stack, database) == rows_of(state)


def replayed(stack: Stack, folder: Path, table: str, text: str, *options: str) -> Any:
    file = folder / "own rows.txt"
    file.write_text(text, "utf-8")
    return stack.run("sandbox", "replay", str(file), "--table", table, *options, check=False)


def test_own_rows_come_or_are_written_over_and_bad_ones_are_reported_by_line(
    stack: Stack, tmp_path: Path
) -> None:
    text = (
        "990001|Anni Albers|American|Female|1899|1994\n"
        '990002|"Arp | Jean"|French||1886|\n'
        "990003|Too old|French||-99999|\n"
        "990001|Anni Albers|German|Female|1899|1994\n"
        "990004|short\n"
    )
    done = replayed(stack, tmp_path, "moma.artists", text)

    assert done.returncode == 1
    assert "3 of 5 rows to moma.artists" in done.stdout
    assert re.findall(r"^line .*", done.stderr, re.MULTILINE) == [
        "line 3: birth_year '-99999' is beyond a 16-bit integer",
        "line 5: has 2 cells, the first row 6",
    ]
    found = stored(stack, DATABASES["moma"])
    assert found["artists", (990001,)]["nationality"] == "German"
    assert found["artists", (990002,)]["name"] == "Arp | Jean"
    assert ("artists", (990003,)) not in found

    # A column that the file does not have stays as it is.
    done = replayed(stack, tmp_path, "moma.artists", "artist_id,name\n990001,A. Albers\n")
    assert done.returncode == 0, done.stderr
    row = stored(stack, DATABASES["moma"])["artists", (990001,)]
    assert (row["name"], row["nationality"]) == ("A. Albers", "German")


def test_a_museums_lengths_are_taken_with_all_their_decimals(stack: Stack, tmp_path: Path) -> None:
    text = (
        "artwork_id|title|height_cm|depth_cm|weight_kg\n"
        "990001|Roots|48.6000000001|31.1150622301|0.4535923700\n"
        "990002|Too fine|48.60000000001||\n"
        "990003|Zeros|48.60000000000|12345678.9|\n"
    )
    done = replayed(stack, tmp_path, "moma.artworks", text)

    assert done.returncode == 1
    assert re.findall(r"^line .*", done.stderr, re.MULTILINE) == [
        "line 3: height_cm '48.60000000001' has 11 decimals, 10 are kept"
    ]
    found = stored(stack, DATABASES["moma"])
    row = found["artworks", (990001,)]
    assert str(row["height_cm"]) == "48.6000000001"
    assert str(row["depth_cm"]) == "31.1150622301"
    assert row["weight_kg"] == Decimal("0.45359237")
    assert found["artworks", (990003,)]["depth_cm"] == Decimal("12345678.9")
    assert ("artworks", (990002,)) not in found


def test_what_only_the_database_can_check_is_reported_by_line_too(
    stack: Stack, tmp_path: Path
) -> None:
    text = (
        "film_id;title;language_id;rating;special_features;release_year\n"
        '990001;GOOD;1;PG-13;{Trailers,"Deleted Scenes"};1999\n'
        "990002;NO SUCH RATING;1;PG-14;;1999\n"
        "990003;NO LIST;1;PG;{Trailers;1999\n"
        "990004;TOO OLD;1;PG;;1800\n"
    )
    done = replayed(stack, tmp_path, "pagila.film", text)

    assert done.returncode == 1
    assert re.findall(r"^line (\d)", done.stderr, re.MULTILINE) == ["3", "4", "5"]
    found = stored(stack, DATABASES["pagila"])
    assert found["film", (990001,)]["special_features"] == ["Trailers", "Deleted Scenes"]
    assert not {("film", (number,)) for number in range(990002, 990005)} & set(found)


def test_mariadb_cuts_nothing_of_what_is_replayed(stack: Stack, tmp_path: Path) -> None:
    text = (
        "990001|1|1|1827|5|600.12|3000.60|2008-01-01 01:02:03\n"
        "990002|1|1|1827|5|600.123|3000.60|2008-01-01 01:02:03\n"
        "990003|1|1|1827|5|600.12|3000.60|2008-01-01 01:02:03.5\n"
    )
    done = replayed(stack, tmp_path, "ecomm.listing", text)

    assert done.returncode == 1
    assert "1 of 3 rows to ecomm.listing" in done.stdout
    assert "line 2: priceperticket '600.123' has 3 decimals, 2 are kept" in done.stderr
    assert "line 3: listtime '2008-01-01 01:02:03.5' is finer" in done.stderr


@pytest.mark.parametrize(
    ("table", "text", "wanted"),
    [
        (
            "ems.event",
            "990001|305|8|1851|Gotterdammerung|2008-01-25 14:30:00\n",
            {
                "eventname": "Gotterdammerung",
                "starttime": datetime.fromisoformat("2008-01-25 14:30"),
            },
        ),
        (
            "ems.venue",
            "990001|Toyota Park|Bridgeview|IL|\n",
            {"venuestate": "IL", "venueseats": None},
        ),
        (
            "crm.user",
            (
                "990001|ZZZ99ZZZ|Ada|Taylor|Kent|WA|ada@example.com|(555) 555-0100"
                "|True|False||TRUE|||False||True|\n"
            ),
            {"username": "ZZZ99ZZZ", "likesports": True, "likeconcerts": None},
        ),
    ],
)
def test_a_ticket_shops_files_are_taken_as_they_are(
    stack: Stack, tmp_path: Path, table: str, text: str, wanted: Row
) -> None:
    done = replayed(stack, tmp_path, table, text)

    assert done.returncode == 0, done.stderr
    name, _, table = table.partition(".")
    row = stored(stack, DATABASES[name])[table, (990001,)]
    assert {column: row[column] for column in wanted} == wanted


def test_a_header_in_other_words_is_not_taken_for_a_row(stack: Stack, tmp_path: Path) -> None:
    before = stored(stack, DATABASES["moma"])
    done = replayed(stack, tmp_path, "moma.artists", "Number|Artist\n1|Somebody else\n")

    assert done.returncode == 2
    assert "`--column artist_id=COLUMN`" in done.stderr
    assert stored(stack, DATABASES["moma"]) == before


def test_nothing_is_written_where_nothing_is_captured(stack: Stack, tmp_path: Path) -> None:
    before = stored(stack, DATABASES["moma"])
    services.down(stack.home, ["connect"])
    try:
        done = stack.run("sandbox", "produce", "moma", "--changes", "5", check=False)
        own = replayed(stack, tmp_path, "moma.artists", "1|Nobody\n")
    finally:
        services.up(stack.home, ["connect"])
    for command in (done, own):
        assert command.returncode == 2
        assert "sandbox up cdc" in command.stderr
    assert stored(stack, DATABASES["moma"]) == before
