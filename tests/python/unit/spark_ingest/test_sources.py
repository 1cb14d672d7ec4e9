"""Streams come from the dbt manifest; what is wrong in a block is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_ingest.errors import ConfigurationError
from spark_ingest.sources import fresh_manifest, read_streams, select_streams


def node(source: str, table: str, meta: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {
        "source_name": source,
        "name": table,
        "schema": "bronze",
        "identifier": f"{source}__{table}",
        "description": "One row\nper record.",
        "columns": {"a": {"name": "a", "description": "The a."}},
        "tags": [],
        "original_file_path": "models/x.yml",
        "config": {"meta": {} if meta is None else {"ingest": meta}},
        **more,
    }


def manifest(folder: Path, *nodes: dict[str, Any]) -> Path:
    file = folder / "manifest.json"
    file.write_text(json.dumps({"sources": {str(i): n for i, n in enumerate(nodes)}}))
    return file


def test_a_block_becomes_a_stream_and_other_sources_do_not(tmp_path: Path) -> None:
    streams = read_streams(
        manifest(
            tmp_path,
            node(
                "shop",
                "sales",
                {"topic": "t", "key": "confluent", "event_time": "a"},
                tags=["daily"],
            ),
            node("files", "regions", None),
        )
    )
    assert [stream.name for stream in streams] == ["shop.sales"]
    (stream,) = streams
    assert stream.table == "bronze.shop__sales"
    assert stream.topic == "t"
    assert stream.ingest.key == "confluent"
    assert stream.ingest.event_time == "a"
    assert stream.ingest.partitioned_by == "days(_ingested_at)"
    assert stream.description == "One row per record."
    assert stream.columns == {"a": "The a."}


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"topic": "t", "framming": "x"}, "shop.sales: config.meta.ingest.framming"),
        ({"framing": "confluent"}, "config.meta.ingest.topic"),
        ({"topic": "t", "framing": "xml"}, "config.meta.ingest.framing"),
        ({"topic": "t", "framing": "json"}, "framing: json needs a data_type for .* a"),
        ({"topic": "t", "key": "json"}, "key: json needs a column _key"),
        ({"topic": "t", "key": "bytes"}, "key: bytes are in _kafka_key already"),
        ({"topic": "t", "framing": "avro"}, "schema: is missing"),
        ({"topic": "t", "key": "avro"}, "key_schema: is missing"),
        ({"topic": "t", "schema": "int"}, "schema: is not used with framing: confluent"),
        ({"topic": "t", "framing": "avro", "schema": "{"}, "schema: .*is not JSON"),
        (
            {"topic": "t", "framing": "avro", "schema": "n.Nobody"},
            "schema: value: the type n.Nobody is not defined",
        ),
        ({"topic": "t", "ids": "global"}, "ids: is not used without an apicurio framing"),
        ({"topic": "t", "subjects": "n.A"}, "ingest.subjects: is not a list of subjects"),
        ({"topic": "t", "subjects": []}, "subjects: is not a list of subjects: give"),
        ({"topic": "t", "subjects": ["n.A", 1]}, "subjects: is not a list of subjects"),
        ({"topic": "t", "subjects": ["n.A", "n.A"]}, "subjects: n.A is duplicate"),
        (
            {"topic": "t", "framing": "apicurio", "subjects": ["n.A"]},
            "subjects: are not used with framing: apicurio, .*Apicurio ids.*remove",
        ),
        (
            {"topic": "t", "framing": "json", "subjects": ["n.A"]},
            "subjects: are not used with framing: json, only with confluent and glue: remove",
        ),
        (
            {"topic": "t", "framing": "glue", "subjects": ["a", "b"]},
            "subjects: are several: framing: glue has one schema",
        ),
        (
            {
                "topic": "t",
                "subjects": ["n.A", "n.B"],
                "captured": {"form": "envelope", "key": ["a"]},
            },
            "captured: with several subjects .*give one subject",
        ),
        (
            {"topic": "t", "subjects": ["n.A", "n.B"], "event_time": "a"},
            "event_time: with several subjects .*remove it",
        ),
        (
            {"topic": "t", "event_time": "b"},
            "config.meta.ingest.event_time: 'b' is not a column of the source",
        ),
    ],
)
def test_a_mistake_in_a_block_names_file_source_and_key(
    tmp_path: Path, meta: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_streams(manifest(tmp_path, node("shop", "sales", meta)))
    assert "models/x.yml" in str(caught.value)


def test_a_framing_with_what_it_needs_is_taken(tmp_path: Path) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
    column = {"name": "a", "description": "", "data_type": "int"}
    raw, text, objects, own = read_streams(
        manifest(
            tmp_path,
            node("a", "raw", {"topic": "1", "framing": "avro", "schema": record}),
            node("a", "text", {"topic": "2", "framing": "avro", "schema": json.dumps(record)}),
            node("b", "json", {"topic": "3", "framing": "json"}, columns={"a": column}),
            node("c", "own", {"topic": "4", "framing": "apicurio", "ids": "content"}),
        )
    )
    assert raw.ingest.value_schema == text.ingest.value_schema == record
    assert objects.types == {"a": "int"}
    assert own.ingest.ids == "content"


def test_types_are_named_by_their_subjects_where_there_are_several(tmp_path: Path) -> None:
    several = ["n.A", "t-n.B"]
    plain, one, two = read_streams(
        manifest(
            tmp_path,
            node("a", "plain", {"topic": "p"}),
            node("b", "one", {"topic": "o", "subjects": ["n.A"]}),
            node("c", "two", {"topic": "t", "subjects": several}),
        )
    )
    assert (plain.subjects, plain.record_types) == (("p-value",), ())
    assert (one.subjects, one.record_types) == (("n.A",), ())
    assert (two.subjects, two.record_types) == (("n.A", "t-n.B"), ("n.A", "n.B"))


def test_two_sources_of_one_topic_are_refused(tmp_path: Path) -> None:
    file = manifest(tmp_path, node("a", "x", {"topic": "t"}), node("b", "y", {"topic": "t"}))
    with pytest.raises(ConfigurationError, match=r"a\.x and b\.y declare the same topic t"):
        read_streams(file)


def test_selectors(tmp_path: Path) -> None:
    streams = read_streams(
        manifest(
            tmp_path,
            node("a", "x", {"topic": "1"}, tags=["hot"]),
            node("a", "y", {"topic": "2"}),
            node("b", "x", {"topic": "3"}),
        )
    )

    def names(*selectors: str) -> list[str]:
        return [stream.name for stream in select_streams(streams, selectors)]

    assert names() == ["a.x", "a.y", "b.x"]
    assert names("a") == ["a.x", "a.y"]
    assert names("b.x", "tag:hot") == ["a.x", "b.x"]
    with pytest.raises(ConfigurationError, match=r"'c' selects no stream; there are: a\.x"):
        names("c")


def test_no_stream_at_all_says_where_to_declare_one() -> None:
    with pytest.raises(ConfigurationError, match=r"config\.meta\.ingest"):
        select_streams([], [])


@pytest.mark.parametrize("text", ["", "{}", "[]"])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="is not a dbt manifest"):
        read_streams(file)


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no dbt_project\.yml"):
        fresh_manifest(tmp_path)


@pytest.mark.parametrize("chosen", ["", "elsewhere", "{folder}/absolute"])
def test_a_manifest_that_is_newer_than_every_yaml_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    path = chosen.format(folder=tmp_path)
    monkeypatch.delenv("DBT_TARGET_PATH", raising=False)
    if path:
        monkeypatch.setenv("DBT_TARGET_PATH", path)
    (tmp_path / "dbt_project.yml").write_text("name: x\n")
    (tmp_path / "models").mkdir()
    file = tmp_path / (path or "target") / "manifest.json"
    file.parent.mkdir()
    file.write_text("{}")
    assert fresh_manifest(tmp_path) == file
