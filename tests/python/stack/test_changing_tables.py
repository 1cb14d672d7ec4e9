"""Tables as people have and change them, captured by the commands alone, are what they are.

Fails when keys, partitions, names or an ALTER TABLE make a current state that is wrong in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sandbox.services import postgres
from sandbox.services.connect import wait_until_passed
from tests.python.walks import Newcomer, newcomer_in

pytestmark = pytest.mark.long

TABLES = """
create table signals (id varchar(42) primary key, type varchar(32), data varchar(2048));
grant insert, update, delete on signals to debezium;
create table seats (id int, who text, primary key (id) deferrable initially immediate);
insert into seats values (1, 'a'), (2, 'b'), (3, 'c');
create table codes (code text primary key, n int);
insert into codes values ('A', 1), ('A ', 2), ('a', 3), (' A', 4);
create table visits (id int, day date, v text, primary key (id, day)) partition by range (day);
create table visits_1 partition of visits for values from ('2026-01-01') to ('2026-02-01');
create table visits_2 partition of visits for values from ('2026-02-01') to ('2026-03-01');
create table "MixedCase" ("Id" int primary key, "firstName" text, "first_name" text);
insert into "MixedCase" values (1, 'a', 'b');
create table ledgers (n numeric(38, 0), u uuid, t text, d date, v int, primary key (n, u, t, d));
create table grown (id int primary key, name text, one int, two int);
insert into grown values (1, 'a', 1, 2), (2, 'b', 3, 4), (3, 'c', 5, 6);
create table moments (id int primary key, begun timestamp, ended timestamp(3));
insert into moments values (1, '2026-01-01', '2026-01-01 00:00:00.001'), (2, '2026-01-02', null);
"""
IDENTITIES = """
alter table seats replica identity full;
alter table codes replica identity full;
alter table visits replica identity full;
alter table visits_1 replica identity full;
alter table visits_2 replica identity full;
alter table "MixedCase" replica identity full;
alter table ledgers replica identity full;
alter table grown replica identity full;
alter table moments replica identity full;
"""
CHANGES = """
update seats set id = id + 1;
delete from codes where code = 'A ';
insert into visits values (1, '2026-01-05', 'x'), (2, '2026-01-06', 'y'), (3, '2026-02-07', 'z');
update visits set day = '2026-02-05' where id = 1;
delete from visits where id = 2;
update "MixedCase" set "firstName" = 'A';
insert into ledgers values
(1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'k ', '2026-01-01', 1),
(99999999999999999999999999999999999999, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'k',
 '1500-01-01', 1),
(-99999999999999999999999999999999999999, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'k',
 '2026-01-01', 1);
update ledgers set v = 2 where n < 0;
delete from ledgers where n = 1;
alter table grown add column price int not null default 11;
update grown set name = 'A' where id = 1;
alter table grown rename column one to other;
alter table grown rename column two to one;
alter table grown rename column other to two;
update grown set name = 'B' where id = 2;
"""
# By stream what its topic is called, what the models have, and what the database says.
STATES = {
    "moma.seats": ("seats", "cast(seat_id as string), who", "select id::text, who from seats"),
    "moma.codes": ("codes", "code_value, cast(n as string)", "select code, n::text from codes"),
    "moma.visits": (
        "visits",
        "cast(visit_id as string), cast(visit_date as string), v",
        "select id::text, day::text, v from visits",
    ),
    "moma.mixed_cases": (
        "MixedCase",
        "cast(mixed_case_id as string), first_name, mixed_case_first_name",
        'select "Id"::text, "firstName", first_name from "MixedCase"',
    ),
    "moma.ledgers": (
        "ledgers",
        "cast(n as string), u, t, cast(d_date as string), cast(v as string)",
        """select n::text, u::text, t, d::text, v::text from ledgers""",
    ),
    "moma.grown": (
        "grown",
        (
            "cast(grown_id as string), grown_name, cast(one as string), cast(two as string), "
            "cast(price as string)"
        ),
        "select id::text, name, one::text, two::text, price::text from grown",
    ),
    "moma.moments": (
        "moments",
        (
            "cast(moment_id as string), date_format(begun_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), "
            "date_format(ended_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
        ),
        (
            "select id::text, to_char(begun, 'YYYY-MM-DD HH24:MI:SS.US'), "
            "to_char(ended, 'YYYY-MM-DD HH24:MI:SS.US') from moments"
        ),
    ),
}
SIGNAL = """
insert into signals values ('grown', 'execute-snapshot',
'{"data-collections": ["public.grown"], "type": "incremental"}')
"""


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """A sandbox whose connector of the museum takes signals."""
    with newcomer_in(tmp_path_factory.mktemp("changing")) as found:
        file = found.checkout / "sandbox" / "connectors" / "moma.json"
        settings = json.loads(file.read_text())
        settings |= {
            "signal.data.collection": "public.signals",
            "incremental.snapshot.chunk.size": "2",
            "table.exclude.list": "public.visits_1,public.visits_2",
        }
        file.write_text(json.dumps(settings, indent=2) + "\n")
        yield found


def in_database(newcomer: Newcomer, text: str) -> list[list[Any]]:
    """Each statement in a transaction of its own; the rows of the last."""
    with closing(postgres.connect(newcomer.home, "moma")) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        for statement in text.split(";"):
            if statement.strip():
                cursor.execute(statement)
        return [list(row) for row in cursor.fetchall()] if cursor.description else []


def changed(newcomer: Newcomer, text: str) -> str:
    """Changes, taken into the current state; what the build printed."""
    in_database(newcomer, text)
    wait_until_passed(newcomer.home, "moma")
    newcomer.type("spark-ingest run moma --once")
    models = " ".join(f"+{state(stream)}" for stream in STATES)
    return newcomer.type(f"dbt build --select {models} --exclude tag:unit")


def state(stream: str) -> str:
    source, table = stream.split(".")
    return f"int_{source}__{table}_current"


def held(newcomer: Newcomer, stream: str) -> list[list[Any]]:
    """Rows of the current state, sorted."""
    columns = STATES[stream][1]
    printed = newcomer.type(
        f'sandbox sql --format json "select {columns} from intermediate.{state(stream)}"'
    )
    return sorted((list(row.values()) for row in json.loads(printed)), key=lambda r: r[0])


def test_tables_as_people_have_and_change_them(newcomer: Newcomer) -> None:
    newcomer.type("sandbox up postgres")
    in_database(newcomer, TABLES + IDENTITIES)
    newcomer.type("sandbox up cdc")
    wait_until_passed(newcomer.home, "moma")
    in_database(newcomer, CHANGES)
    wait_until_passed(newcomer.home, "moma")
    for stream, (table, _, _) in STATES.items():
        newcomer.type(f"spark-ingest new-captured {stream} --topic moma.public.{table}")
    changed(newcomer, "select 1")

    for stream, (_, _, query) in STATES.items():
        if stream != "moma.grown":
            assert held(newcomer, stream) == sorted(in_database(newcomer, query)), stream
    # PostgreSQL logs no change of a row that ALTER TABLE gives another value.
    assert held(newcomer, "moma.grown") == [
        ["1", "A", "1", "2", "11"],
        ["2", "B", "4", "3", "11"],
        ["3", "c", "5", "6", None],
    ]

    changed(newcomer, SIGNAL)

    grown = in_database(newcomer, STATES["moma.grown"][2])
    assert held(newcomer, "moma.grown") == sorted(grown)

    in_database(newcomer, "alter table moments alter column ended type timestamp(6)")
    changed(newcomer, "update moments set ended = '2026-01-01 00:00:00.000001'")
    newcomer.type("spark-ingest create && spark-ingest reconcile moma")
    built = newcomer.type("dbt build --select +rpt_reconciliation +rpt_quarantine")
    states = newcomer.type(
        'sandbox sql --format csv "select reconciliation_state from marts.rpt_reconciliation '
        "where stream_name = 'moma.moments'\""
    )
    assert "Got 1 result" in built
    assert "assert_no_captured_change_is_in_quarantine" in built
    assert states.splitlines()[1] == "stale"

    # A column of another name has a type of its own.
    in_database(newcomer, "alter table moments rename column ended to ended_micros")
    changed(newcomer, "update moments set id = id")
    kept = newcomer.type(
        'sandbox sql --format csv "select count(*) from bronze.moma__moments '
        'where ended_micros = 1767225600000001"'
    )
    assert kept.splitlines()[1] == "2"
