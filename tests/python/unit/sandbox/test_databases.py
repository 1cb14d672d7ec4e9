"""Rows and random changes of the captured databases: made of a seed, and as their schema says."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from itertools import islice, pairwise
from typing import Any

import pytest
import yaml

from sandbox.databases.known import DATABASES
from sandbox.databases.run import run
from sandbox.databases.state import Change, DatabaseState, Kind
from sandbox.databases.statements import OtherWriter, sql_of, upsert
from sandbox.databases.tables import Database, Row
from sandbox.databases.transactions import Transaction, transactions
from sandbox.services.captured_databases import schema_text
from sandbox.settings import PROJECT

EVERY = pytest.mark.parametrize("name", DATABASES)
SIZE = 60
CHANGES = 1_000
# A column of a schema's file: name, type, what its brackets hold, the rest.
COLUMN = re.compile(r"    `?(\w+)`? (\w+)(?:\s?\(([\d, ]+)\))?( \[\])?([^\n]*)\n")
INTEGERS = {"smallint": 16, "integer": 32, "int": 32, "year": 32}

State = dict[tuple[str, tuple[Any, ...]], Row]


def first_contents(database: Database, seed: int = 1) -> DatabaseState:
    return DatabaseState(database, database.rows(seed, SIZE))


def drawn(
    database: Database, in_memory: DatabaseState, changes: int | None = CHANGES, seed: int = 1
) -> Iterator[Transaction]:
    operations = database.operations + database.truncates
    return transactions(in_memory, operations, seed, changes)


def state_of(in_memory: DatabaseState) -> State:
    tables = in_memory.database.tables
    return {
        (table.name, table.key_of(row)): row
        for table in tables
        for row in in_memory.rows(table.name)
    }


@cache
def schema(name: str) -> dict[str, dict[str, tuple[str, str, str]]]:
    """Type, size and the rest of each column, by table, as the schema's file has them."""
    found = {}
    for table, body in re.findall(
        r"create table [`\"]?(\w+)[`\"]? \(\n(.*?)\n\)", schema_text(name), re.DOTALL
    ):
        found[table] = {
            column: (f"{kind}{array.strip()}", size, rest)
            for column, kind, size, array, rest in COLUMN.findall(f"{body}\n")
            if column != "primary"
        }
    return found


def described(file: str) -> dict[str, Any]:
    """What a YAML file says of models or sources."""
    content: dict[str, Any] = yaml.safe_load((PROJECT / "models" / file).read_text())
    return content


def fits(value: Any, kind: str, size: str, rest: str) -> bool:
    """Whether a database takes a value for a column, and gives back the same."""
    if value is None:
        return "not null" not in rest and "primary key" not in rest
    if kind in INTEGERS:
        low = 1901 if kind == "year" else -(2 ** (INTEGERS[kind] - 1))
        high = 2155 if kind == "year" else 2 ** (INTEGERS[kind] - 1)
        return type(value) is int and low <= value < high
    if kind in {"varchar", "char"}:
        padded = kind == "varchar" or value == value.rstrip() or len(value) == int(size)
        return padded and "\0" not in value and len(value) <= int(size)
    if kind in {"numeric", "decimal"}:
        precision, scale = map(int, size.split(","))
        places = -value.as_tuple().exponent
        return bool(places <= scale and abs(value) < 10 ** (precision - scale))
    if kind == "mpaa_rating":
        return value in {"G", "PG", "PG-13", "R", "NC-17"}
    if kind in {"datetime", "timestamp"}:
        return value.tzinfo is None and (size == "6" or value.microsecond == 0)
    types = {"text": str, "date": date, "boolean": bool, "text[]": list}
    return type(value) is types[kind]


def type_errors(database: Database, table: str, row: Row) -> list[str]:
    columns = schema(database.name)[table]
    return [
        f"{table}.{column} = {value!r}"
        for column, value in row.items()
        if not fits(value, *columns[column])
    ]


@EVERY
def test_the_same_seed_makes_the_same_rows_and_another_seed_others(name: str) -> None:
    make = DATABASES[name].rows
    assert list(make(1, SIZE)) == list(make(1, SIZE))
    assert list(make(1, SIZE)) != list(make(2, SIZE))


@EVERY
def test_every_first_row_fits_its_table_and_has_a_key_of_its_own(name: str) -> None:
    database = DATABASES[name]
    in_memory = first_contents(database)  # raises where a key stands twice
    for table in database.tables:
        assert in_memory.count(table.name) > 0
        for row in in_memory.rows(table.name):
            assert set(row) == set(table.columns)
            assert type_errors(database, table.name, row) == []


@EVERY
def test_columns_that_rows_are_given_are_the_schemas(name: str) -> None:
    database = DATABASES[name]
    assert {table.name for table in database.tables} == set(schema(name))
    for table in database.tables:
        assert set(table.columns) <= set(schema(name)[table.name])
        assert set(table.key) <= set(table.columns)


def test_the_first_rows_are_as_many_as_documented() -> None:
    counted = {
        name: Counter(table for table, _ in database.rows(1, database.size))
        for name, database in DATABASES.items()
    }
    assert counted["moma"] == {"artists": 1_500, "artworks": 3_000}
    assert counted["ems"] == {"category": 11, "venue": 205, "event": 8_798}
    assert counted["ecomm"] == {"date": 365, "listing": 192_497, "sale": 172_456}
    assert counted["crm"] == {"user": 49_990}
    pagila = counted["pagila"]
    assert (pagila["film"], pagila["actor"], pagila["address"]) == (1_000, 200, 600)


@EVERY
def test_the_same_seed_makes_the_same_changes_of_the_same_rows(name: str) -> None:
    database = DATABASES[name]
    first = list(drawn(database, first_contents(database)))
    assert list(drawn(database, first_contents(database))) == first
    assert list(drawn(database, first_contents(database), seed=2)) != first


@EVERY
def test_every_changed_value_fits_its_column(name: str) -> None:
    database = DATABASES[name]
    for transaction in drawn(database, first_contents(database)):
        for change in transaction.changes:
            assert type_errors(database, change.table, change.values) == []


@EVERY
@pytest.mark.parametrize("changes", [1, 2, 7, CHANGES])
def test_exactly_as_many_changes_are_committed_as_asked(name: str, changes: int) -> None:
    database = DATABASES[name]
    made = list(drawn(database, first_contents(database), changes))
    kept = [one for one in made if not one.is_rolled_back]
    assert sum(len(one.changes) for one in kept) == changes
    assert all(one.changes for one in made)


def applied(state: State, database: Database, transaction: Transaction) -> State:
    """What a transaction makes of a state, worked out a second way."""
    after = dict(state)
    for table, kind, key, values in transaction.changes:
        if kind is Kind.TRUNCATE:
            after = {at: row for at, row in after.items() if at[0] != table}
            continue
        before = {} if kind is Kind.INSERT else after.pop((table, key))
        if kind is not Kind.DELETE:
            row = {**before, **values}
            at = (table, database.table(table).key_of(row))
            assert at not in after, f"{at} is there already"
            after[at] = row
    return after


@EVERY
def test_the_contents_are_as_each_transaction_leaves_the_database(name: str) -> None:
    database = DATABASES[name]
    in_memory = first_contents(database)
    state = state_of(in_memory)
    rolled_back = 0
    for transaction in drawn(database, in_memory):
        after = applied(state, database, transaction)
        rolled_back += transaction.is_rolled_back
        state = state if transaction.is_rolled_back else after
        assert state_of(in_memory) == state
    assert rolled_back > 10


def has_key_change(database: Database, transaction: Transaction) -> bool:
    return any(
        change.kind is Kind.UPDATE
        and {**change.values, **dict(zip(table.key, change.key, strict=True))}
        != {**dict(zip(table.key, change.key, strict=True)), **change.values}
        for change in transaction.changes
        for table in [database.table(change.table)]
    )


@EVERY
def test_all_that_capture_finds_hard_happens(name: str) -> None:
    database = DATABASES[name]
    made = list(drawn(database, first_contents(database), 4_000))
    seen: Counter[str] = Counter()
    gone: set[tuple[str, Any]] = set()
    for transaction in made:
        keys = Counter((one.table, one.key) for one in transaction.changes)
        kinds = [(one.table, one.key, one.kind) for one in transaction.changes]
        seen["rolled back"] += transaction.is_rolled_back
        seen["key change"] += has_key_change(database, transaction)
        seen["row changed twice"] += max(keys.values()) > 1
        seen["several rows"] += len(keys) > 1
        seen["gone and come"] += any(
            one == (table, key, Kind.DELETE) and other == (table, key, Kind.INSERT)
            for one, other in pairwise(kinds)
            for table, key, _ in [one]
        )
        seen["come back"] += any(
            kind is Kind.INSERT and (table, key) in gone for table, key, kind in kinds
        )
        if not transaction.is_rolled_back:
            gone |= {(table, key) for table, key, kind in kinds if kind is Kind.DELETE}
            for _, _, kind in kinds:
                seen[kind] += 1
    wanted = {"rolled back", "key change", "row changed twice", "several rows"}
    wanted |= {"gone and come", "come back", Kind.INSERT, Kind.UPDATE, Kind.DELETE}
    wanted |= {Kind.TRUNCATE} if database.truncates else set()
    assert {what: seen[what] for what in wanted if seen[what] < 5} == {}
    # What comes and what goes are in a balance in which no table runs empty or away.
    assert 0.5 < seen[Kind.DELETE] / seen[Kind.INSERT] * 2 < 1.5


def test_tables_are_emptied_only_where_that_is_asked_for() -> None:
    database = DATABASES["pagila"]
    in_memory = first_contents(database)
    made = transactions(in_memory, database.operations, 1, CHANGES)
    kinds = Counter(change.kind for one in made for change in one.changes)
    assert kinds[Kind.TRUNCATE] == 0
    assert not DATABASES["moma"].truncates  # a flattened connector does not send it


def test_a_museum_writes_what_it_does_not_know_in_many_ways() -> None:
    rows = list(DATABASES["moma"].rows(1, 1_500))
    artists = [row for table, row in rows if table == "artists"]
    works = [row for table, row in rows if table == "artworks"]
    nationalities = {row["nationality"] for row in artists}
    assert {None, "", "NULL", "Nationality Unknown", "French "} <= nationalities
    assert {None, "", "NULL", "Unknown", "Male", "male"} <= {row["gender"] for row in artists}
    assert {0, None} <= {row["birth_year"] for row in artists}
    assert {None, "", "Unknown", "n.d."} <= {row["date_text"] for row in works}
    assert {None, "", "(not assigned)"} <= {row["classification"] for row in works}
    known = {row["artist_id"] for row in artists}
    assert {row["artist_id"] for row in works} - known > {None}
    assert any(not row["name"].isascii() for row in artists)


def test_a_museums_lengths_have_up_to_ten_decimals_and_every_layer_keeps_them() -> None:
    rows = DATABASES["moma"].rows(1, 200)
    heights = [row["height_cm"] for table, row in rows if table == "artworks"]
    decimals = {-height.normalize().as_tuple().exponent for height in heights if height}
    assert max(decimals) == 10

    artworks = schema("moma")["artworks"]
    kept = {
        column: f"decimal({size.replace(' ', '')})"
        for column, (kind, size, _) in artworks.items()
        if kind == "numeric"
    }
    sources = described("staging/moma/_moma__sources.yml")["sources"][0]["tables"]
    (source,) = (table for table in sources if table["name"] == "artworks")
    captured = described("intermediate/museum/_moma__captured.yml")["models"]
    (history,) = (m for m in captured if m["name"] == "int_moma__artworks_history")
    (mart,) = described("marts/museum/dim_artworks.yml")["models"]
    for relation in (source, history, mart):
        types = {column["name"]: column["data_type"] for column in relation["columns"]}
        measures = kept.keys() & types.keys()
        assert len(measures) >= 5
        assert {name: types[name] for name in measures} == {name: kept[name] for name in measures}


def test_some_films_have_descriptions_that_are_stored_outside_of_the_row() -> None:
    films = [row for table, row in DATABASES["pagila"].rows(1, 1_000) if table == "film"]
    long = [row for row in films if len(row["description"] or "") > 10_000]
    assert 20 < len(long) < 100
    assert max(len(row["description"]) for row in long) < 40_000
    assert {type(row["special_features"]) for row in films} == {list, type(None)}
    assert any(row["special_features"] == [] for row in films)
    assert any(None in (row["special_features"] or ()) for row in films)


def test_statements_name_tables_as_each_server_wants_it() -> None:
    ecomm_database, pagila = DATABASES["ecomm"], DATABASES["pagila"]
    key_change = Change("film_actor", Kind.UPDATE, (1, 2), {"actor_id": 3})
    assert sql_of(pagila, key_change) == (
        'update "film_actor" set "actor_id" = %s where "actor_id" = %s and "film_id" = %s',
        [3, 1, 2],
    )
    day = Change("date", Kind.DELETE, (1827,), {})
    assert sql_of(ecomm_database, day) == ("delete from `date` where `dateid` = %s", (1827,))
    assert sql_of(pagila, Change("film", Kind.TRUNCATE, (), {}))[0] == ('truncate table "film"')


def test_a_row_of_nothing_but_its_key_is_written_over_all_the_same() -> None:
    pagila = DATABASES["pagila"]
    statement = upsert(pagila, pagila.table("film_actor"), ["actor_id", "film_id"])
    assert statement.endswith(
        'on conflict ("actor_id", "film_id") do update set "actor_id" ='
        ' excluded."actor_id", "film_id" = excluded."film_id"'
    )


class Server:
    """A database that only notes the statements it gets, and is interrupted at a statement."""

    def __init__(self, interrupted_at: int = 0, rowcount: int = 1) -> None:
        self.statements: list[str] = []
        self.rowcount = rowcount
        self._interrupted_at = interrupted_at

    def cursor(self) -> Server:
        return self

    def execute(self, statement: str, _parameters: Any = None, /) -> None:
        self.statements.append(statement.partition(" ")[0])
        if 0 < self._interrupted_at <= len(self.statements):
            self._interrupted_at = 0
            signal.raise_signal(signal.SIGINT)

    def fetchall(self) -> list[Any]:
        return []

    def commit(self) -> None:
        self.statements.append("commit")

    def rollback(self) -> None:
        self.statements.append("rollback")

    def close(self) -> None:
        self.statements.append("close")


def test_each_transaction_ends_as_it_says_and_only_committed_changes_count() -> None:
    moma, server = DATABASES["moma"], Server()
    made = list(drawn(moma, first_contents(moma), 300))
    done = run(moma, server, made)
    assert done.changes.total() == 300
    assert done.transactions + done.rolled_back == len(made)
    assert server.statements.count("commit") == done.transactions
    assert server.statements.count("rollback") == done.rolled_back > 0


def test_ctrl_c_ends_it_with_whole_transactions() -> None:
    moma, server = DATABASES["moma"], Server(interrupted_at=40)
    done = run(moma, server, drawn(moma, first_contents(moma), None))
    assert done.interrupted
    assert server.statements[-1] in {"commit", "rollback"}
    assert 40 <= len(server.statements) < 100
    assert server.statements.count("commit") == done.transactions > 0
    # The next Ctrl-C is everybody else's again.
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_changes_come_as_fast_as_asked_and_no_faster() -> None:
    moma, server = DATABASES["moma"], Server()
    done = run(moma, server, drawn(moma, first_contents(moma), 40), rate=200)
    assert 0.1 < done.seconds < 2


def test_a_row_that_somebody_else_deleted_ends_the_run() -> None:
    moma, server = DATABASES["moma"], Server(rowcount=0)
    with pytest.raises(OtherWriter, match=r"moma\.\w+ has no row"):
        run(moma, server, islice(drawn(moma, first_contents(moma), None), 500))
    assert server.statements[-1] == "rollback"
