"""Chunks of an incremental snapshot, as Debezium writes them of PostgreSQL, read by DuckDB.

Fails when a chunk has no place in the log, or counts as a whole snapshot.
"""

from __future__ import annotations

from types import SimpleNamespace

import duckdb
import pytest

from tests.python.unit.dbt.test_change_histories import Captured
from tests.python.unit.dbt.test_dbt_macros import Macros
from tests.python.unit.dbt.test_increment_macros import Node

OF_LOG = "struct<lsn:bigint,ts_ms:bigint,sequence:string,snapshot:string>"
FORMS = {
    "flattened": {
        "id": "int",
        "is_deleted": "string",
        "__op": "string",
        "__deleted": "string",
        "__lsn": "bigint",
        "__source_ts_ms": "bigint",
        "__source_sequence": "string",
        "__source_snapshot": "string",
    },
    "envelope": {
        "before": "struct<id:int,is_deleted:string>",
        "after": "struct<id:int,is_deleted:string>",
        "source": OF_LOG,
        "op": "string",
    },
}
RECORDS = [
    (1, "r", 100, '[null,"100"]', "last"),
    (2, "u", 110, '["90","110"]', None),
    (3, "r", None, '["120","130"]', "incremental"),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_chunk_lies_behind_what_was_sent_before_it(form: str) -> None:
    stream = Node(
        source_name="shop",
        name="codes",
        columns={name: Node(name=name, data_type=kind) for name, kind in FORMS[form].items()},
        config=SimpleNamespace(
            meta=SimpleNamespace(ingest=SimpleNamespace(captured=Captured(form=form, key=["id"])))
        ),
    )
    query = Macros(settings={"log_restarts": {}}).changes_of_records("bronze", stream)
    with duckdb.connect() as lake:
        lake.execute("create macro timestamp_millis(millis) as make_timestamp(millis * 1000)")
        lake.execute(
            "create view bronze as select {'id': id} as _key, false as _is_tombstone,"
            " 'T' as _kafka_topic_id, 0 as _kafka_partition, id as _kafka_offset,"
            " timestamp '2026-01-01' as _kafka_timestamp, timestamp '2026-01-01' as"
            " _ingested_at, 1 as _commit_id, * from ("
            + " union all ".join(_record(form, *record) for record in RECORDS)
            + ")"
        )
        found = lake.execute(
            "select change_kind, is_snapshot, cast(source_position as integer),"
            f" row_is_deleted from ({query}) order by record_key"
        )
        assert found.fetchall() == [
            ("snapshot", True, 100, "no"),
            ("update", False, 110, "no"),
            ("snapshot chunk", True, 130, "no"),
        ]


def _record(
    form: str, row: int, kind: str, lsn: int | None, sequence: str, snapshot: str | None
) -> str:
    place = {
        "lsn": "null::bigint" if lsn is None else lsn,
        "ts_ms": 0,
        "sequence": f"'{sequence}'",
        "snapshot": "null" if snapshot is None else f"'{snapshot}'",
    }
    if form == "envelope":
        said = ", ".join(f"'{name}': {value}" for name, value in place.items())
        image = f"{{'id': {row}, 'is_deleted': 'no'}}"
        return (
            f"select {row} as id, {image} as before, {image} as after, '{kind}' as op,"
            f" {{{said}}} as source"
        )
    flat = ", ".join(
        f"{value} as {'__lsn' if name == 'lsn' else f'__source_{name}'}"
        for name, value in place.items()
    )
    return f"select {row} as id, 'no' as is_deleted, '{kind}' as __op, 'false' as __deleted, {flat}"


def test_a_moment_that_no_two_engines_read_alike_is_null() -> None:
    moment = Macros().timestamp_from_zoned("text")
    texts = ["2026-01-01T00:00:00.5Z", "infinity", "-infinity", "+15000-12-31T00:00:00Z"]
    texts += ["-0043-03-13T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
    with duckdb.connect() as lake:
        found = lake.execute(
            f"select cast({moment} as text) from (select unnest(?) as text)", [texts]
        ).fetchall()

    assert [row[0] is None for row in found] == [False, True, True, True, True, False]
