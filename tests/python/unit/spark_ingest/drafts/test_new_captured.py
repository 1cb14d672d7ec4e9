"""A captured table's source and models, written from schemas alone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlfluff.dialects.dialect_redshift_keywords import redshift_reserved_keywords

from sandbox.settings import PROJECT
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.drafts import captured_files as files
from spark_ingest.drafts.captured_columns import CapturedColumn, singular
from spark_ingest.drafts.captured_schema import CapturedTable, read_table, topic_of
from spark_ingest.drafts.model_text import Names
from spark_ingest.drafts.plans import models_of, planned_files
from spark_ingest.drafts.project_files import check_is_new, write_files
from spark_ingest.errors import ConfigurationError
from tests.python.project_copy import copy_project
from tests.python.stack.captured_records import (
    FILM,
    decimal,
    envelope,
    flattened,
    key_schema,
    meaning,
    with_field,
)

TOPIC = "shop.public.films"
NAMES = Names("shop", "films", "rentals", "film")
KEYS = [WriterSchema(2, key_schema(TOPIC, "film_id"))]


CAPTURED = Path("models/intermediate/rentals/_shop__captured.yml")


def models_in(text: str) -> dict[str, dict[str, Any]]:
    """The models that a YAML text describes, by their names."""
    return {model["name"]: model for model in yaml.safe_load(text)["models"]}


def of_fields(
    *kinds: tuple[str, Any], form: Any = flattened, key: tuple[str, ...] = ()
) -> CapturedTable:
    fields = FILM
    for name, kind in kinds:
        fields = with_field(fields, name, kind)
    values = [WriterSchema(1, form(TOPIC, fields))]
    taken, beside = files.added_names(), files.names_of_changes()
    return read_table(TOPIC, values, KEYS, key, "film", taken, beside)


def column(name: str, kind: Any) -> CapturedColumn:
    table = of_fields((name, kind))
    return next(each for each in table.columns if each.source == name)


@pytest.mark.parametrize(
    ("name", "kind", "sql", "contract"),
    [
        ("small", {"type": "int", "connect.type": "int16"}, "small", "integer"),
        ("big", "long", "big", "bigint"),
        ("fee", decimal(8, 3), "fee", "decimal(8,3)"),
        (
            "fee_amount",
            decimal(8, 2),
            "cast(fee_amount as decimal(18, 2)) as fee_amount",
            "decimal(18,2)",
        ),
        ("fee_amount", decimal(9, 3), "fee_amount as film_fee_amount_value", "decimal(9,3)"),
        ("active", "boolean", "active as is_active", "boolean"),
        ("is_new", "boolean", "is_new", "boolean"),
        (
            "begin_date",
            meaning("int", "io.debezium.time.Date"),
            '{{ date_from_days("begin_date") }} as begin_date',
            "date",
        ),
        (
            "day",
            meaning("int", "io.debezium.time.Date"),
            '{{ date_from_days("day") }} as film_date',
            "date",
        ),
        (
            "seen",
            meaning("long", "io.debezium.time.Timestamp"),
            '{{ timestamp_from_millis("seen") }} as seen_at',
            "timestamp",
        ),
        (
            "seen_time",
            meaning("long", "io.debezium.time.MicroTimestamp"),
            '{{ timestamp_from_micros("seen_time") }} as seen_at',
            "timestamp",
        ),
        (
            "seen_at",
            meaning("string", "io.debezium.time.ZonedTimestamp"),
            '{{ timestamp_from_zoned("seen_at") }} as seen_at',
            "timestamp",
        ),
        ("opens", meaning("long", "io.debezium.time.MicroTime"), "opens", "bigint"),
        ("made", meaning("int", "io.debezium.time.Year"), "made", "integer"),
        (
            "mood",
            meaning(
                "string",
                "io.debezium.data.Enum",
                **{"connect.parameters": {"allowed": "calm,as happy as ever was"}},
            ),
            '{{ trimmed_text("mood", 20) }} as mood',
            "varchar(20)",
        ),
        (
            "owner_uuid",
            meaning("string", "io.debezium.data.Uuid"),
            '{{ trimmed_text("owner_uuid", 36) }} as owner_uuid',
            "varchar(36)",
        ),
        (
            "body",
            meaning("string", "io.debezium.data.Json"),
            '{{ trimmed_text("body", 16384) }} as body',
            "varchar(16384)",
        ),
        (
            "city",
            {"type": "string", "connect.parameters": {"__debezium.source.column.length": "50"}},
            '{{ trimmed_text("city", 200) }} as city',
            "varchar(200)",
        ),
        ("name", "string", '{{ trimmed_text("name", 4096) }} as film_name', "varchar(4096)"),
        ("order", "int", "changes.order as film_order", "integer"),
        ("camelCase", "int", "camelCase as camel_case", "integer"),
        ("is_counted", "int", "is_counted as film_is_counted_value", "integer"),
    ],
)
def test_a_column_has_the_sql_and_type_of_what_it_means(
    name: str, kind: Any, sql: str, contract: str
) -> None:
    made = column(name, kind)

    assert (made.sql, made.contract) == (sql, contract)


@pytest.mark.parametrize(
    "kind", ["float", "double", "bytes", {"type": "array", "items": ["null", "string"]}]
)
def test_what_no_type_of_both_engines_holds_is_left_out_and_reported(kind: Any) -> None:
    table = of_fields(("odd", kind))

    assert "odd" in table.left_out
    assert "odd" in table.fields
    assert all(each.source != "odd" for each in table.columns)


def test_forms_and_positions_are_known_by_their_fields() -> None:
    flat, whole = of_fields(), of_fields(form=envelope)

    assert (flat.form, whole.form) == ("flattened", "envelope")
    assert (flat.position, whole.position) == ("lsn", "lsn")
    # Of an envelope's arrays of texts `captured_changes` makes one text.
    arrays = [each for each in whole.columns if each.source == "special_features"]
    assert [each.contract for each in arrays] == ["varchar(4096)"]
    assert flat.left_out == {"special_features": "array<string>"}
    assert flat.columns == tuple(each for each in whole.columns if each not in arrays)
    assert flat.key == whole.key == ("film_id",)
    assert whole.fields["after"].startswith("struct<film_id:int,title:string")


def test_a_type_that_is_too_long_for_a_line_stands_below(project: Path) -> None:
    planned = planned_files(project, NAMES, of_fields(form=envelope))

    text = planned[Path("models/staging/shop/_shop__sources.yml")]
    assert "            data_type: >-\n              struct<film_id:int," in text


def test_a_binlog_is_known_by_file_position_and_row() -> None:
    schema = flattened(TOPIC, FILM)
    schema["fields"] = [f for f in schema["fields"] if f["name"] != "__lsn"]
    for name, kind in (("file", "string"), ("pos", "long"), ("row", "int")):
        schema["fields"].append({"name": f"__source_{name}", "type": ["null", kind]})

    table = read_table(TOPIC, [WriterSchema(1, schema)], KEYS, (), "film")

    assert table.position == "binlog"


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("bytes", "binary.handling.mode=hex"),
        (VARIABLE, "decimal.handling.mode=string"),
        ("double", "message.key.columns"),
    ],
)
def test_a_key_that_no_model_can_have_is_refused_with_a_way(kind: Any, way: str) -> None:
    values = [WriterSchema(1, flattened(TOPIC, with_field(FILM, "code", kind)))]

    with pytest.raises(ConfigurationError, match=re.escape(way)):
        read_table(TOPIC, values, [], ("code",), "film")


def without(*names: str) -> list[WriterSchema]:
    schema = flattened(TOPIC, FILM)
    schema["fields"] = [f for f in schema["fields"] if f["name"] not in names]
    return [WriterSchema(1, schema)]


@pytest.mark.parametrize(
    ("values", "keys", "key", "said"),
    [
        ([], KEYS, (), "no subject shop.public.films-value"),
        (without("__op"), KEYS, (), "no changes of a captured table"),
        (without("__lsn"), KEYS, (), "add.fields with lsn"),
        (without("__source_ts_ms"), KEYS, (), "add.fields with source.ts_ms"),
        (without("__deleted"), KEYS, (), "rewrite-with-tombstone"),
        (without(), [], (), "with --key"),
        (without(), [], ("films_id",), "--key films_id: shop.public.films has no such column"),
        (without(), KEYS, ("title",), "have the key film_id"),
    ],
)
def test_a_topic_that_will_not_do_is_refused_with_the_fix(
    values: list[WriterSchema], keys: list[WriterSchema], key: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        read_table(TOPIC, values, keys, key, "film")


def test_a_topic_is_found_by_its_tables_name() -> None:
    there = ["a.public.films-value", "a.public.films-key", "b.public.films-value"]

    assert topic_of(there, "a", "films") == "a.public.films"
    assert topic_of(there[:2], "c", "films") == "a.public.films"
    with pytest.raises(ConfigurationError, match="with --topic"):
        topic_of(there, "c", "films")
    with pytest.raises(ConfigurationError, match="no subject that ends with"):
        topic_of(there, "a", "actors")


@pytest.mark.parametrize(
    ("table", "one"),
    [
        ("artists", "artist"),
        ("categories", "category"),
        ("film_actors", "film_actor"),
        ("boxes", "box"),
        ("status", "status"),
        ("address", "address"),
    ],
)
def test_a_row_is_called_by_its_tables_name(table: str, one: str) -> None:
    assert singular(table) == one


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


def test_a_table_of_a_new_source_takes_files_of_its_own(project: Path) -> None:
    planned = planned_files(project, NAMES, of_fields(("notes", "string")))

    assert sorted(str(path) for path in planned) == [
        "dbt_project.yml",
        "models/intermediate/ops/int_ops__captured_rows_moved.sql",
        "models/intermediate/rentals/_shop__captured.yml",
        "models/intermediate/rentals/int_shop__films_current.sql",
        "models/intermediate/rentals/int_shop__films_history.sql",
        "models/staging/shop/_shop__docs.md",
        "models/staging/shop/_shop__sources.yml",
        "models/staging/shop/stg_shop__films.sql",
    ]
    (source,) = yaml.safe_load(planned[Path("models/staging/shop/_shop__sources.yml")])["sources"]
    (written,) = source["tables"]
    assert written["config"]["meta"]["ingest"] == {
        "topic": TOPIC,
        "framing": "confluent",
        "key": "confluent",
        "captured": {"form": "flattened", "key": ["film_id"]},
    }
    types = {each["name"]: each["data_type"] for each in written["columns"]}
    assert types["_key"] == "struct<film_id:int>"
    assert types["rental_rate"] == "decimal(4,2)"


def test_a_history_lists_what_all_histories_list(project: Path) -> None:
    models = models_in(planned_files(project, NAMES, of_fields())[CAPTURED])

    mine = {column["name"] for column in models[NAMES.history]["columns"]}
    macro = (project / "macros/captured/change_history.sql").read_text()
    listed = macro.partition("macro columns_of_history")[2].partition("{%- endmacro")[0]
    assert mine >= set(re.findall(r'"(\w+)"', listed))


def test_every_captured_table_has_what_a_new_one_gets(project: Path) -> None:
    pattern = planned_files(project, NAMES, of_fields())[CAPTURED]
    added = files.added_names()
    described: set[str] = set()

    def promised(model: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        listed = [each for each in model["columns"] if each["name"] in added]
        # Which columns are the key of the state is each table's own matter.
        is_state = model["name"].endswith("_current")
        return listed, [] if is_state else model["data_tests"]

    for file in sorted((PROJECT / "models/intermediate").glob("*/_*__captured.yml")):
        source = file.name.removeprefix("_").removesuffix("__captured.yml")
        like, text = pattern.replace("shop", source), file.read_text()
        # What all tables share is reported by the same words.
        assert text.startswith(like.partition("models:")[0])
        models = models_in(text)
        for table in re.findall(rf"name: stg_{source}__(\w+)", text):
            new = models_in(like.replace("films", table))
            for name, model in new.items():
                if f"{source}.{table}" == "pagila.polled_address":
                    # What a query found is in no snapshot.
                    del model["data_tests"][1:]
                assert promised(models[name]) == promised(model), name
            described |= new.keys()
        assert described >= models.keys()

    calls = re.compile(r"\b(captured_changes|change_history|latest_state)\(")
    models_there = (PROJECT / "models").rglob("*.sql")
    assert described == {f.stem for f in models_there if calls.search(f.read_text())}


def test_a_table_of_a_known_source_is_added_behind_its_others(project: Path) -> None:
    file = Path("models/staging/moma/_moma__sources.yml")
    before = (project / file).read_text()
    names = Names("moma", "films", "museum", "film")

    planned = planned_files(project, names, of_fields())

    assert planned[file].startswith(before)
    tables = yaml.safe_load(planned[file])["sources"][0]["tables"]
    assert [table["name"] for table in tables] == ["artists", "artworks", "films"]
    # Folder and owner are there.
    assert Path("dbt_project.yml") not in planned


def test_a_column_that_another_table_has_is_named_by_its_alias(project: Path) -> None:
    file = Path("models/intermediate/museum/_moma__captured.yml")
    before = (project / file).read_text()
    names = Names("moma", "films", "museum", "film")
    table = of_fields(("artist_id", "int"), ("gender", "string"))

    text = planned_files(project, names, table)[file]

    assert text.startswith(before)
    added = text.removeprefix(before)
    # The same words, type and key are the same column; another type is one of this table's own.
    assert added.count("*artist_id_or_null,") == 3
    assert "&artist_id" not in added
    assert added.count("&films_gender ") == 1
    assert added.count("*films_gender,") == 2
    types = {c["name"]: c["data_type"] for c in models_in(text)[names.state]["columns"]}
    assert (types["artist_id"], types["gender"]) == ("integer", "varchar(4096)")


@pytest.mark.parametrize(
    "text", ["{}\nseeds:\n  - name: a\n", "{}\nseeds: []\n", "models:\n  - name: a\n"]
)
def test_a_file_that_has_no_place_for_a_block_is_left_alone(project: Path, text: str) -> None:
    file = project / "models/intermediate/museum/_moma__captured.yml"
    file.write_text(text.format(file.read_text()))

    with pytest.raises(ConfigurationError, match="does not end with its models"):
        planned_files(project, Names("moma", "films", "museum", "film"), of_fields())


def test_what_is_described_already_is_described_by_the_same_words(project: Path) -> None:
    planned = planned_files(project, NAMES, of_fields(("country", "string")))

    docs = planned[Path("models/staging/shop/_shop__docs.md")]
    assert "docs country" not in docs
    assert """{name: country, description: "{{ doc('country') }}\"""" in planned[CAPTURED]


def test_a_table_that_is_there_is_refused_by_its_file(project: Path) -> None:
    write_files(project, planned_files(project, NAMES, of_fields()))

    with pytest.raises(ConfigurationError, match="exists already") as refused:
        check_is_new(project, NAMES, models_of(NAMES))

    assert "_shop__sources.yml" in str(refused.value)
    assert "_shop__captured.yml" in str(refused.value)
    assert "nothing was changed" in str(refused.value)


def test_a_name_that_is_taken_costs_no_table() -> None:
    table = of_fields(
        ("is_deleted", "boolean"),
        ("valid_to_at", "int"),
        ("firstName", "int"),
        ("first_name", "int"),
        ("first__name", "int"),
        ("größe", "int"),
        ("価格", "int"),
    )

    made = {column.source: column for column in table.columns}
    assert {name: made[name].name for name in list(made)[-7:]} == {
        "is_deleted": "is_film_deleted",
        "valid_to_at": "film_valid_to_at_value",
        "firstName": "first_name",
        "first_name": "film_first_name",
        "first__name": "film_first_name_2",
        "größe": "grosse",
        "価格": "film_value",
    }
    assert made["is_deleted"].sql == "row_is_deleted as is_film_deleted"
    assert made["valid_to_at"].sql == "valid_to_at as film_valid_to_at_value"


def test_no_column_has_a_word_of_sql_for_its_name() -> None:
    words = {word.strip().lower() for word in redshift_reserved_keywords.splitlines()}

    for word in words - {""} | {"current_date", "order", "user"}:
        made = column(word, "int")
        assert made.name.startswith("film_"), word
        assert made.sql.startswith(f"changes.{word} as "), word


def test_keys_keep_the_blanks_at_their_ends() -> None:
    keys = [WriterSchema(2, key_schema(TOPIC, "code"))]
    values = [WriterSchema(1, flattened(TOPIC, with_field(FILM, "code", "string")))]

    table = read_table(TOPIC, values, keys, (), "film")

    made = {column.source: column.sql for column in table.columns}
    assert made["code"] == "cast(code as varchar(128)) as film_code"


def test_make_passes_its_variables_on() -> None:
    said = ["TABLE=shop.films", "TOPIC=a.b", "KEY=x,y", "DOMAIN=rentals"]
    # A make that runs this test says how to run those below it.
    free = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}

    done = subprocess.run(
        ["make", "-n", "new-captured", *said],
        cwd=PROJECT,
        env=free,
        capture_output=True,
        text=True,
        check=True,
    )

    command = "spark-ingest new-captured 'shop.films' --topic 'a.b' --key 'x,y' --domain 'rentals'"
    assert command in done.stdout
