"""The ten steps from a database of one's own to its current state, typed from the page.

Fails when a step of docs/capture-a-database.md fails as it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sandbox.services import postgres
from sandbox.services.connect import wait_until_passed
from tests.python.typed_pages import CAPTURE, blocks, do
from tests.python.walks import Newcomer, newcomer_in

pytestmark = pytest.mark.long

VISITS = """
create type mood as enum ('calm', 'very happy');
create table visits (
    visit_id bigint primary key,
    name text,
    visitor uuid,
    mood mood,
    is_member boolean not null default false,
    fee numeric(8, 2),
    day date,
    opens time,
    arrived timestamp,
    left_at timestamptz,
    notes jsonb,
    small smallint,
    "order" int,
    "camelCase" varchar(20)
);
alter table visits replica identity full;
insert into visits values
(1, 'Añ ', '11111111-1111-1111-1111-111111111111', 'calm', true, 12.50, '2026-01-02',
 '10:11:12.5', '2026-01-02 10:11:12.123456', '2026-01-02 10:11:12.123456+02', '{"a": 1}', 3,
 7, 'cc'),
(2, null, null, null, false, null, '1500-02-28', null, '1960-01-01 00:00:00.000001',
 '1960-01-01 00:00:00+14', null, null, null, ''),
(3, 'gone', null, 'very happy', false, 0.01, null, null, null, null, null, -1, 2, null);
"""
CHANGES = """
update visits set name = 'B', fee = 99.99, mood = 'very happy' where visit_id = 2;
update visits set visit_id = 4 where visit_id = 1;
delete from visits where visit_id = 3;
insert into visits (visit_id, name) values (5, 'new')
"""
# A column comes, one is widened, and the new one goes again, between changes of rows.
OTHER_COLUMNS = """
alter table visits add column extra text default 'x', alter column small type integer;
update visits set small = 70000 where visit_id = 5;
insert into visits (visit_id, extra) values (6, 'y');
alter table visits drop column extra;
update visits set name = 'C' where visit_id = 5
"""
IN_DATABASE = """
select visit_id::text, rtrim(name), visitor::text, mood::text, is_member::text, fee::text,
    day::text, (extract(epoch from opens) * 1000000)::bigint::text,
    to_char(arrived, 'YYYY-MM-DD HH24:MI:SS.US'),
    to_char(left_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), notes::text, small::text,
    "order"::text, "camelCase"
from visits order by visit_id
"""
IN_LAKE = (
    "select cast(visit_id as string), visit_name, visitor, mood, cast(is_member as string), "
    "cast(fee as string), cast(visit_date as string), cast(opens as string), "
    "date_format(arrived_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), "
    "date_format(left_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), notes, cast(small as string), "
    "cast(visit_order as string), camel_case "
    "from intermediate.int_moma__visits_current order by int_moma__visits_current.visit_id"
)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_in(tmp_path_factory.mktemp("captures")) as found:
        yield found


def held(newcomer: Newcomer, query: str) -> list[list[Any]]:
    printed = newcomer.type(f'sandbox sql --format json "{query}"')
    return [list(row.values()) for row in json.loads(printed)]


def in_database(newcomer: Newcomer, text: str) -> list[list[Any]]:
    with closing(postgres.connect(newcomer.home, "moma")) as connection, connection:
        cursor = connection.cursor()
        cursor.execute(text)
        return [list(row) for row in cursor.fetchall()] if cursor.description else []


def written(newcomer: Newcomer) -> dict[Path, str]:
    return {
        file: file.read_text()
        for suffix in ("sql", "yml", "md")
        for file in sorted(newcomer.checkout.rglob(f"*.{suffix}"))
        if "target" not in file.parts
    }


def test_the_page_leads_to_the_current_state(newcomer: Newcomer) -> None:
    there = blocks(CAPTURE.read_text())
    for block, following in zip(there, [*there[1:], None], strict=True):
        if block.kind == "text":
            continue
        printed = do(block, newcomer)
        # The rest shows times, ports and numbers of processes.
        if block.is_query and following is not None and following.kind == "text":
            assert printed == following.text

    customers = held(
        newcomer,
        "select customer_id, customer_name, cast(credit as string) "
        "from intermediate.int_shop__customers_current order by customer_id",
    )
    assert customers == [[1, "Ada Lovelace", "12.50"], [2, "Alan Turing", "20.00"]]


def test_new_models_pass_the_checks_and_hold_what_a_changing_table_holds(
    newcomer: Newcomer,
) -> None:
    newcomer.type("sandbox up cdc")
    in_database(newcomer, VISITS)
    wait_until_passed(newcomer.home, "moma")

    newcomer.type("spark-ingest new-captured moma.visits")

    before = written(newcomer)
    again = newcomer.type("! spark-ingest new-captured moma.visits 2>&1")
    absent = newcomer.type("! spark-ingest new-captured moma.absent 2>&1")
    assert "exists already" in again
    assert "no subject that ends with .absent-value" in absent
    assert written(newcomer) == before
    newcomer.type("yamllint --strict models dbt_project.yml dbt-bouncer.yml")
    newcomer.type("dbt --quiet --warn-error parse --no-partial-parse && dbt-bouncer")
    newcomer.type(
        "sqlfluff lint models/staging/moma/stg_moma__visits.sql "
        "models/intermediate/museum/int_moma__visits_*.sql"
    )

    for changes in ("", CHANGES, OTHER_COLUMNS):
        if changes:
            in_database(newcomer, changes)
            wait_until_passed(newcomer.home, "moma")
        newcomer.type("spark-ingest run moma.visits --once")
        newcomer.type("dbt build --select +int_moma__visits_current")
        assert held(newcomer, IN_LAKE) == in_database(newcomer, IN_DATABASE)
    # What models do not name is in bronze all the same.
    extra = held(
        newcomer,
        "select distinct extra from bronze.moma__visits where extra is not null order by extra",
    )
    assert extra == [["x"], ["y"]]
