"""A stream's source and staging model, written from schemas or a CSV alone."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from sandbox.settings import PROJECT
from sandbox.streams import STREAMS
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.drafts.event_schema import EventStream, read_events
from spark_ingest.drafts.model_text import Names
from spark_ingest.drafts.plans import (
    DraftOptions,
    Planned,
    plan_of_csv,
    plan_of_topic,
    planned_files,
)
from spark_ingest.drafts.project_files import write_files
from spark_ingest.errors import ConfigurationError
from tests.python.project_copy import copy_project
from tests.python.stack.captured_records import FILM, envelope, flattened

TOPIC = "shop.orders"
KEY = [WriterSchema(2, {"type": "long"})]
SOURCES = Path("models/staging/shop/_shop__sources.yml")
STAGING = Path("models/staging/shop/stg_shop__orders.sql")
STAGING_YAML = Path("models/staging/shop/stg_shop__orders.yml")
CSV = """\
order_id,customer,amount,is_gift,order,placed_at
1,Ada,19.99,true,7,2026-01-05T10:00:00Z
2,,5.5,false,,2026-01-06T11:30:00Z
"""


def events(*fields: tuple[str, Any], keys: list[WriterSchema] = KEY) -> EventStream:
    return read_events(TOPIC, [schema(*fields)], keys, "order", {"record_key"})


def schema(*fields: tuple[str, Any]) -> WriterSchema:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return WriterSchema(1, {"type": "record", "name": "Order", "fields": listed})


@dataclass
class Subjects:
    """A registry of these subjects."""

    held: dict[str, list[WriterSchema]] = field(default_factory=dict)

    def subjects(self) -> list[str]:
        return [*self.held]

    def subject_schemas(self, subject: str) -> list[WriterSchema]:
        return self.held.get(subject, [])


class Topics:
    """A broker with one topic."""

    def topic(self, name: str) -> object | None:
        return object() if name == TOPIC else None


def planned(
    project: Path, held: dict[str, list[WriterSchema]], **more: Any
) -> Planned[EventStream]:
    return plan_of_topic(
        project,
        DraftOptions(TOPIC, **more),
        cast(SchemaRegistry, Subjects(held)),
        cast(Broker, Topics()),
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    file = tmp_path / "orders.csv"
    file.write_text(CSV)
    return file


def test_a_stream_takes_its_source_its_model_and_an_owner(project: Path, csv: Path) -> None:
    files = plan_of_csv(project, DraftOptions(TOPIC, domain="sales"), csv, "order_id").files

    assert [str(path) for path in files] == [
        "models/staging/shop/_shop__sources.yml",
        "models/staging/shop/stg_shop__orders.sql",
        "models/staging/shop/stg_shop__orders.yml",
        "models/staging/shop/_shop__docs.md",
        "dbt_project.yml",
    ]
    assert "      shop: {+meta: {owner: sales}}\n" in files[Path("dbt_project.yml")]
    (source,) = yaml.safe_load(files[SOURCES])["sources"]
    (table,) = source["tables"]
    assert table["config"]["meta"]["ingest"] == {
        "topic": TOPIC,
        "framing": "confluent",
        "key": "confluent",
        "event_time": "placed_at",
    }
    types = {each["name"]: each["data_type"] for each in table["columns"]}
    assert {name: types[name] for name in list(types)[:7]} == {
        "order_id": "bigint",
        "customer": "string",
        "amount": "decimal(18,2)",
        "is_gift": "boolean",
        "order": "bigint",
        "placed_at": "timestamp",
        "_key": "bigint",
    }


def test_a_new_stream_is_declared_as_those_that_are_there(project: Path, csv: Path) -> None:
    files = plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id").files

    mine = yaml.safe_load(files[SOURCES])["sources"][0]["tables"][0]
    there = yaml.safe_load((project / "models/staging/pagila/_pagila__sources.yml").read_text())[
        "sources"
    ][0]["tables"][0]
    assert list(mine) == list(there)
    assert list(mine["config"]) == list(there["config"])

    def added(table: Any) -> list[Any]:
        return [
            (each["name"], each["description"], each.get("constraints"))
            for each in table["columns"]
            if each["name"].startswith("_") and each["name"] not in ("_key", "_commit_id")
        ]

    assert added(mine) == added(there)
    staging, like = (
        yaml.safe_load(text)["models"][0]
        for text in (
            files[STAGING_YAML],
            (project / "models/staging/pagila/stg_pagila__sales.yml").read_text(),
        )
    )
    assert [[*test] for test in staging["data_tests"]] == [[*test] for test in like["data_tests"]]
    assert staging["columns"][-6:] == like["columns"][-6:]
    sql = (project / "models/staging/pagila/stg_pagila__sales.sql").read_text()
    assert files[STAGING].partition("-- metadata")[2] == sql.partition("-- metadata")[2]


def test_the_model_renames_and_casts_in_groups(project: Path, csv: Path) -> None:
    sql = plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id").files[STAGING]

    chosen = sql.partition(") as record_key,\n")[2].partition("        -- metadata")[0]
    assert chosen == (
        "        order_id,\n\n"
        "        -- attributes\n"
        '        {{ trimmed_text("customer", 4096) }} as customer,\n\n'
        "        -- numbers\n"
        "        amount,\n"
        "        records.order as order_value,\n\n"
        "        -- flags\n"
        "        is_gift,\n"
        "        _is_tombstone as is_tombstone,\n\n"
        "        -- times\n"
        "        cast(placed_at as timestamp) as placed_at,\n\n"
    )


def test_the_yaml_lists_the_columns_as_the_model_has_them(project: Path, csv: Path) -> None:
    files = plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id").files

    (model,) = yaml.safe_load(files[STAGING_YAML])["models"]
    final = files[STAGING].partition("varchar(20)) as varchar(64)\n")[2]
    named = re.findall(r"(\w+),?\n", final.partition("    from records")[0])
    listed = [each["name"] for each in model["columns"]]
    assert [name for name in named if name in listed] == listed
    required, casts = model["data_tests"]
    assert required["key_and_required_columns"]["arguments"]["columns_where"] == {
        "not is_tombstone": ["order_id"]
    }
    assert casts["casts_keep"]["arguments"]["renamed"] == {"order": "order_value"}


def test_what_no_record_leaves_out_is_required() -> None:
    wide = read_events(
        TOPIC,
        [
            schema(("a", "long"), ("b", "string"), ("c", "int")),
            schema(("a", "long"), ("b", ["null", "string"]), ("d", "int")),
        ],
        [],
        "order",
    )

    assert wide.required == ("a",)
    assert wide.key_type is None


def test_the_time_of_an_event_is_the_only_one() -> None:
    moment = {"type": "long", "logicalType": "timestamp-millis"}

    assert events(("a", "int"), ("seen", moment)).event_time == "seen"
    assert events(("sent", moment), ("seen", moment)).event_time is None
    assert events(("a", "int")).event_time is None


def test_what_no_type_of_both_engines_holds_stays_in_bronze(project: Path) -> None:
    stream = events(("a", "long"), ("ratio", "double"), ("_own", "int"))

    files = planned_files(project, Names("shop", "orders", "shop", "order"), stream)

    assert stream.left_out == {"ratio": "double"} | {
        name: "int" for name in stream.fields if name.endswith("own")
    }
    (model,) = yaml.safe_load(files[STAGING_YAML])["models"]
    casts = model["data_tests"][1]["casts_keep"]["arguments"]
    assert casts["left_out"] == [*stream.left_out]
    assert "ratio" in files[SOURCES]
    assert "ratio" not in files[STAGING]


def test_long_lists_of_columns_stand_in_lines(project: Path) -> None:
    stream = events(*((f"a_column_of_the_event_{at}", "long") for at in range(9)))

    files = planned_files(project, Names("shop", "orders", "shop", "order"), stream)

    text = files[STAGING_YAML]
    assert "              not is_tombstone:\n                - a_column_of_the" in text
    assert "\n\n" not in text.partition("\nunit_tests:")[0]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", ["pagila.sales", "smoothies.products", "smoothies.inventories"])
def test_a_stream_that_is_there_would_get_the_types_that_it_has(name: str) -> None:
    stream = STREAMS[name]
    source, _, table = name.partition(".")
    file = PROJECT / f"models/staging/{source}/_{source}__sources.yml"
    declared = next(
        each
        for each in yaml.safe_load(file.read_text())["sources"][0]["tables"]
        if each["name"] == table
    )

    read = read_events(
        stream.topic,
        [WriterSchema(1, stream.value_schema)],
        [WriterSchema(2, stream.key_schema)],
        "event",
    )

    types = {each["name"]: each["data_type"] for each in declared["columns"]}
    assert {**read.fields, "_key": read.key_type} == {
        name: kind for name, kind in types.items() if name == "_key" or not name.startswith("_")
    }
    assert read.event_time == declared["config"]["meta"]["ingest"]["event_time"]


def test_the_topic_is_found_in_the_registry(project: Path) -> None:
    found = planned(project, {f"{TOPIC}-value": [schema(("a", "long"))], f"{TOPIC}-key": KEY})

    assert (found.read.topic, found.read.key_type) == (TOPIC, "bigint")


@pytest.mark.parametrize(
    ("held", "more", "said"),
    [
        ({}, {}, "no subject that ends with .orders-value: produce a record first"),
        ({}, {"topic": TOPIC}, f"no subject {TOPIC}-value: produce a record first"),
        ({}, {"topic": "a.b"}, "topic a.b does not exist: produce a record first"),
        ({}, {"domain": "No"}, "give source and table in lower case"),
        (
            {f"{TOPIC}-value": [WriterSchema(1, flattened(TOPIC, FILM))]},
            {},
            "`spark-ingest new-captured`",
        ),
        (
            {f"{TOPIC}-value": [WriterSchema(1, envelope(TOPIC, FILM))]},
            {},
            "`spark-ingest new-captured`",
        ),
        (
            {f"{TOPIC}-value": [schema(("ratio", "double"))]},
            {},
            "has a type that both engines support",
        ),
    ],
)
def test_a_topic_that_will_not_do_is_refused_with_the_fix(
    project: Path, held: dict[str, Any], more: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        planned(project, held, **more)


def test_a_stream_that_is_there_is_refused_and_nothing_changes(project: Path, csv: Path) -> None:
    write_files(project, plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id").files)
    before = (project / SOURCES).read_text()

    with pytest.raises(ConfigurationError, match="exists already") as refused:
        plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id")

    assert str(STAGING) in str(refused.value)
    assert (project / SOURCES).read_text() == before


def test_a_second_stream_stands_behind_the_first(project: Path, csv: Path) -> None:
    write_files(project, plan_of_csv(project, DraftOptions(TOPIC), csv, "order_id").files)

    files = plan_of_csv(project, DraftOptions("shop.returns"), csv, "order_id").files

    assert files[SOURCES].startswith((project / SOURCES).read_text())
    # The owner is there, and what columns of these names are is said.
    assert Path("dbt_project.yml") not in files
    docs = files[Path("models/staging/shop/_shop__docs.md")]
    assert docs.count("docs order_id") == 1


def test_a_csv_in_another_encoding_is_refused(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    file.write_bytes("id,name\n1,Zoë\n".encode("latin1"))

    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        plan_of_csv(project, DraftOptions(TOPIC), file, "id")


def test_make_passes_its_variables_on() -> None:
    said = ["STREAM=shop.orders", "TOPIC=a.b", "CSV=my file.csv", "KEY=x", "DOMAIN=d"]
    # A make that runs this test says how to run those below it.
    free = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}

    done = subprocess.run(
        ["make", "-n", "new-stream", *said],
        cwd=PROJECT,
        env=free,
        capture_output=True,
        text=True,
        check=True,
    )

    command = (
        "spark-ingest new-stream 'shop.orders' --topic 'a.b' --csv 'my file.csv' "
        "--key 'x' --domain 'd'"
    )
    assert command in done.stdout
