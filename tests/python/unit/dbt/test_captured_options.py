"""What sources and histories of captured tables may say, and what it becomes in SQL.

Fails when a wrong option builds, two rows share a key's text, or a late key's literal is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from spark_ingest.captured import Captured
from tests.python.unit.dbt.test_change_histories import STREAM, context, engine
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros, Table

ROW = {"row_name": "int", "name": "string", "last_update": "timestamp"}
FLAT = {**ROW, "__deleted": "string", "__lsn": "bigint", "__source_ts_ms": "bigint"}


def described(bronze: Mapping[str, str], **options: Any) -> Macros:
    """The macros, where the source has these columns and options."""
    return context(
        options=options,
        columns={name: SimpleNamespace(name=name, data_type=kind) for name, kind in bronze.items()},
        this=Table("int_moma__artists_history"),
    )


def delete_condition(bronze: Mapping[str, str], **options: Any) -> Any:
    made = described(bronze, **options)
    return made.delete_condition(made.captured_stream(STREAM))


def of_types(**types: str) -> Macros:
    """The macros in a history whose contract has these types."""
    columns = {name: {"data_type": kind} for name, kind in types.items()}
    return context(model=SimpleNamespace(columns=columns))


def test_dbt_knows_the_options_that_ingest_knows() -> None:
    assert set(Macros().options_of_captured()) == set(Captured.model_fields)


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"trunctes_when": "true"}, "trunctes_when is not one of its keys"),
        ({"track": ["name"]}, "track and ignore_null_updates are arguments"),
        ({"form": "flat"}, "form is flat: flattened, envelope or rows"),
        ({"form": "rows", "position": "lsn"}, "form rows needs as position a list"),
        ({"key": ["nr"]}, "key names nr, which is not one of its columns"),
        ({"columns": ["row_name", "nme"]}, "columns names nme, which it does not"),
        ({"columns": {"all_but": ["nme"]}}, "columns names nme, which it does not"),
        ({"form": "envelope"}, "no column after is described"),
    ],
)
def test_a_wrong_option_of_a_source_does_not_build(options: dict[str, Any], mistake: str) -> None:
    made = described(FLAT, **options)

    with pytest.raises(CompilerError, match=mistake) as caught:
        made.changes_of_records("bronze", made.captured_stream(STREAM))

    assert "source moma.artists (a.yml): config.meta.ingest.captured: " in str(caught.value)


def test_deletes_when_counts_beside_what_the_form_shows() -> None:
    extra = "records.status = 'gone'"

    assert delete_condition(FLAT) == "records.__deleted = 'true'"
    assert delete_condition(FLAT, deletes_when=extra) == f"records.__deleted = 'true' or ({extra})"
    assert (
        delete_condition(ROW, form="envelope", deletes_when=extra)
        == f"records.op = 'd' or ({extra})"
    )
    assert delete_condition(ROW, form="rows", position=["last_update"]) is None


def test_deletes_when_is_all_where_the_connector_adds_no_deleted_field() -> None:
    assert delete_condition(ROW, deletes_when="records.__op = 'd'") == ("(records.__op = 'd')")


def test_an_option_of_a_history_names_its_attributes() -> None:
    made = described(FLAT)
    attributes = ["name", "note", "rank"]

    def chosen(choice: Any) -> Any:
        return made.chosen_attributes("track", choice, attributes)

    assert chosen(None) == chosen(True) == attributes
    assert chosen(False) == []
    assert chosen(["rank", "name"]) == ["name", "rank"]
    assert chosen({"all_but": ["note"]}) == ["name", "rank"]
    for wrong in (["last_update"], {"all_but": ["last_update"]}):
        with pytest.raises(CompilerError, match=r"track of int_moma.* last_update"):
            chosen(wrong)


@pytest.mark.parametrize("name", ["is_deleted", "change_kind", "seen_to_at", "_since"])
def test_an_attribute_may_not_be_named_like_what_histories_add(name: str) -> None:
    with pytest.raises(CompilerError, match=f"{name} is the name of a column that"):
        described(FLAT).assert_names_are_free(["artist_id", name])


def test_names_that_begin_alike_meet_nowhere() -> None:
    """``name`` beside ``last_name``, ``deleted``, ``position``: names of what steps add."""
    attributes = ["name", "last_name", "previous_name", "deleted", "position", "row"]
    made = of_types(row_name="integer", **dict.fromkeys(attributes, "varchar(8)"))
    change = {
        "row_name": "1",
        **dict.fromkeys(attributes, "'a'"),
        "change_kind": "'create'",
        **dict.fromkeys(["is_deleted", "is_tombstone", "is_snapshot", "is_incomplete"], "false"),
        "_is_current_version": "false",
        "source_position": "'10'",
        "source_committed_at": "timestamp '2026-01-01'",
        **dict.fromkeys(["_kafka_topic_id", "version_key"], "'T'"),
        **dict.fromkeys(["_kafka_partition", "_kafka_offset", "_commit_id"], "1"),
        **dict.fromkeys(["_kafka_timestamp", "_ingested_at"], "timestamp '2026-01-01'"),
        **dict.fromkeys(["seen_to_position", "valid_from_position"], "null::varchar"),
        **dict.fromkeys(["seen_to_at", "valid_from_at"], "null::timestamp"),
    }
    query = made.versions_of_changes(
        f"select {', '.join(f'{sql} as {name}' for name, sql in change.items())}",
        ["row_name"],
        attributes,
        ["name", "last_name"],
        made.carried_values(attributes, ["name", "deleted"], ["last_name", "row"]),
    )

    rows = engine().execute(query).fetchall()

    assert [row[0] for row in rows] == ["1-10c"]


def test_only_texts_that_may_be_stored_apart_are_left_out_of_a_log() -> None:
    made = of_types(short="varchar(8)", long="varchar(64)", rank="integer")

    assert made.texts_of_log(STREAM, ["short", "long", "rank"]) == ["long"]


@pytest.mark.parametrize("options", [{"position": "binlog"}, {"form": "rows"}])
def test_what_has_no_log_of_postgresql_leaves_nothing_out(options: dict[str, Any]) -> None:
    options.setdefault("position", ["last_update"])
    made = context(
        options=options, model=SimpleNamespace(columns={"long": {"data_type": "varchar(64)"}})
    )

    assert made.texts_of_log(STREAM, ["long"]) == []


ODD = ["a", "a-b", "b", "b-c", "c", "-", "~", "~1", "~0", "x" * 127, "x" * 129, "ü" * 70]


def test_no_two_keys_have_one_text() -> None:
    made = of_types(one="varchar(8)", two="varchar(8)")
    (single, pair) = made.key_text(["one"]), made.key_text(["one", "two"])
    lake = engine()
    lake.execute("create table keys (one varchar, two varchar)")
    lake.executemany("insert into keys values (?, ?)", [(a, b) for a in ODD for b in ODD])

    pairs = lake.execute(f"select {pair} from keys").fetchall()
    singles = lake.execute(f"select distinct one, {single} from keys").fetchall()

    assert len(set(pairs)) == len(ODD) ** 2
    assert len({text for _, text in singles}) == len(ODD)
    assert all(len(text.encode()) <= 128 for (text,) in pairs)
    assert ("a-b", "a-b") in singles


def test_a_key_of_numbers_stays_as_it_is() -> None:
    made = of_types(one="integer", two="bigint")

    assert made.key_text(["one", "two"]) == (
        "cast(one as varchar(40)) || '-' || cast(two as varchar(40))"
    )


def test_a_key_of_many_digits_has_them_all() -> None:
    columns = ["one", "two", "three", "four"]
    made = of_types(**dict.fromkeys(columns, "decimal(38,1)"))
    whole, last = "9" * 37 + ".1", "9" * 37 + ".2"
    lake = engine()
    lake.execute(f"create table keys ({', '.join(f'{c} decimal(38,1)' for c in columns)})")
    for value in (whole, last, f"-{whole}"):
        lake.execute(f"insert into keys values (1, 1, 1, {value})")
        lake.execute(f"insert into keys values ({value}, {value}, {value}, {value})")

    (single, four) = made.key_text(["four"]), made.key_text(columns)
    found = lake.execute(f"select distinct {single}, {four} from keys").fetchall()

    assert {text for text, _ in found} == {whole, last, f"-{whole}"}
    assert len({text for _, text in found}) == 6
    assert all(len(text) <= 128 for _, text in found)


def test_numbers_compare_as_texts_do() -> None:
    numbers = [-(2**63), -(2**63) + 1, -(10**9), -10, -9, -1, 0, 1, 9, 10, 2**63 - 1]
    query = Macros().number_text("number")
    lake = engine()

    texts = [
        lake.execute(f"select {query} from (select ?::bigint as number)", [of]).fetchone()
        for of in numbers
    ]

    assert texts == sorted(texts, key=str)
    for one, other in combinations(texts, 2):
        assert one != other


@pytest.mark.parametrize("text", ["a'b", "back\\slash", "\\", "'\\'", "plain"])
def test_a_late_key_is_the_same_text_in_sql(text: str) -> None:
    literal = Macros().sql_literal(text)

    assert engine().execute(f"select {literal}").fetchone() == (text,)
    # An engine that takes a backslash for an escape finds none.
    assert "\\" not in literal
