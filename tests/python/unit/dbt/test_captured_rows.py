"""Records of the form `rows`, read by DuckDB: a row alone, with no operation beside it."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import duckdb

from tests.python.unit.dbt.test_change_histories import Captured
from tests.python.unit.dbt.test_dbt_macros import Macros
from tests.python.unit.dbt.test_increment_macros import Node

COLUMNS = {"address_id": "int", "phone": "string", "last_update": "timestamp"}
# As a column without a zone gives it back.
SENT_AT = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC).replace(tzinfo=None)
UPDATED_AT = SENT_AT - dt.timedelta(hours=2, microseconds=-5)


def changes(*rows: tuple[int | None, str | None, str | None]) -> list[dict[str, Any]]:
    """What staging finds in records; one without a key column is the tombstone of row 1."""
    captured = Captured(form="rows", key=["address_id"], position=["last_update"])
    stream = Node(
        source_name="pagila",
        name="polled_address",
        columns={
            name: Node(name=name, data_type=kind)
            for name, kind in {**COLUMNS, "_json": "string"}.items()
        },
        config=SimpleNamespace(meta=SimpleNamespace(ingest=SimpleNamespace(captured=captured))),
    )
    # DuckDB's name for the microseconds of a timestamp is another one than Spark's.
    query = (
        Macros(settings={"log_restarts": {}})
        .changes_of_records("bronze", stream)
        .replace("unix_micros(", "epoch_us(")
    )
    with duckdb.connect() as lake:
        lake.execute(
            "create table bronze (address_id int, phone text, last_update timestamp,"
            " _key struct(address_id int), _is_tombstone boolean, _kafka_topic_id text,"
            " _kafka_partition int, _kafka_offset bigint, _kafka_timestamp timestamp,"
            " _ingested_at timestamp, _commit_id bigint)"
        )
        for offset, row in enumerate(rows):
            lake.execute(
                "insert into bronze values (?, ?, ?, {'address_id': 1}, ?, 'T', 0, ?, ?, ?, 1)",
                [*row, row[0] is None, offset, SENT_AT, SENT_AT],
            )
        found = lake.execute(f"{query} order by _kafka_offset")
        names = [column[0] for column in found.description or []]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_a_row_is_an_update_at_the_place_that_its_own_columns_give() -> None:
    (found,) = changes((1, "555", str(UPDATED_AT)))

    micros = int(UPDATED_AT.replace(tzinfo=dt.UTC).timestamp() * 1_000_000)
    assert found["change_kind"] == "update"
    assert (found["is_snapshot"], found["is_deleted"]) == (False, False)
    assert (found["address_id"], found["phone"]) == (1, "555")
    assert found["source_position"] == f"{micros:020d}"
    assert found["source_committed_at"] == UPDATED_AT


def test_a_tombstone_deletes_the_row_of_its_key_by_kafkas_time() -> None:
    (found,) = changes((None, None, None))

    assert (found["change_kind"], found["is_deleted"]) == ("tombstone", True)
    assert found["address_id"] == 1
    assert found["source_position"] is None
    assert found["source_committed_at"] == SENT_AT
