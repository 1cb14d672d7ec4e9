"""Each data test of the project fails on a lake with the fault that it is there for.

The lake is the demo's with all that it leaves out, and with rows of captured tables; every test
passes on it. A fault is planted in a view that stands in a test's compiled SQL for the relation at
fault; no table changes.

Fails when a data test passes on data with the fault that it is there for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.settings import PROJECT
from spark_ingest.sources import target_folder
from tests.python.conftest import Stack
from tests.python.mutations.planting import entries
from tests.python.parity.records import Bronze
from tests.python.spark.bronze_tables import add, append
from tests.python.stack.captured_faults import moments_fit, text_keys_stay_apart, texts_fit
from tests.python.stack.conftest import DemoRun, brief

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Row = dict[str, Any]
    Caught = Callable[[list[Row]], bool]

pytestmark = pytest.mark.long

# A value that no relation holds, by the beginning of its type; of other types there is none.
_STRANGE = {
    "string": "'nowhere'",
    "int": "-1",
    "bigint": "-1",
    "decimal": "-1",
    "date": "date '1700-01-01'",
    "boolean": "true",
    "timestamp": "timestamp '1700-01-01 00:00:00'",
}


@dataclass(frozen=True)
class Fault:
    """What is wrong in which relation, and which rows of a test show it.

    Attributes:
        relation: The schema and name of a table or view.
        query: Its rows with the fault; ``{rows}`` stands for them as they are.
        caught: Whether the rows that the test returned are those of this fault.
        beside: What another relation says meanwhile, where it takes two to make the fault.
    """

    relation: str
    query: str
    caught: Caught = field(default=bool)
    beside: Fault | None = None


@dataclass(frozen=True)
class Lake:
    """The relations as they are, and how to write one down with something wrong."""

    spark: SparkSession

    def columns(self, relation: str) -> dict[str, str]:
        return dict(self.spark.table(relation).dtypes)

    def added(self, relation: str, changes: dict[str, str], where: str = "true") -> Fault:
        """One row twice, the second time with some columns changed."""
        rows, row = "{rows}", f"(select * from {{rows}} where {where} limit 1)"
        if self.spark.table(relation).isEmpty():
            rows = row = f"(select * from ({self._made_up(relation)}) where {where} limit 1)"
        return Fault(
            relation,
            f"select * from {rows} union all select {self._selected(relation, changes)} from {row}",
        )

    def changed(self, relation: str, changes: dict[str, str], where: str = "true") -> Fault:
        """One row, of those where a condition holds, says something else."""
        selected = self._selected(relation, changes, "planted_at = 1")
        return Fault(relation, f"select {selected} from {self._numbered(where)}")

    def removed(self, relation: str, where: str = "true") -> Fault:
        """One row, of those where a condition holds, is not there."""
        selected = ", ".join(self.columns(relation))
        return Fault(
            relation, f"select {selected} from {self._numbered(where)} where planted_at > 1"
        )

    def versions(self, earlier: dict[str, str], later: dict[str, str]) -> Fault:
        """Of one product two versions that follow each other, but for some changes."""
        first = {
            "is_first_version": "true",
            "is_current": "false",
            "valid_to_at": "valid_from_at + interval 1 day",
        }
        second = {
            "is_first_version": "false",
            "is_current": "true",
            "valid_from_at": "valid_from_at + interval 1 day",
            "valid_to_at": "null",
        }
        row = "(select * from {rows} order by product_key limit 1)"
        return Fault(
            _PRODUCTS,
            f"select {self._selected(_PRODUCTS, first | earlier)} from {row}"
            f" union all select {self._selected(_PRODUCTS, second | later)} from {row}",
        )

    def with_field(self, relation: str, path: list[str], value: str) -> str:
        """What a column says when it, or a field of it, has another value."""
        column, *fields = path
        if not fields:
            return value
        named = ", ".join(
            f"'{name}', {value if [name] == fields else f'{column}.{name}'}"
            for name in self.spark.table(relation).select(f"{column}.*").columns
        )
        return f"named_struct({named})"

    def _made_up(self, relation: str) -> str:
        rows = []
        for boolean in ("true", "false"):
            values = _STRANGE | {"boolean": boolean}
            made = (
                f"cast({values.get(kind.partition('(')[0], 'null')} as {kind}) as {name}"
                for name, kind in self.columns(relation).items()
            )
            rows.append(f"select {', '.join(made)}")
        return " union all ".join(rows)

    def _numbered(self, where: str) -> str:
        return (
            "(select *, row_number() over"
            f" (order by case when {where} then 0 else 1 end) as planted_at from {{rows}})"
        )

    def _selected(self, relation: str, changes: dict[str, str], when: str = "true") -> str:
        return ", ".join(
            f"cast(case when {when} then {changes[name]} else {name} end as {kind}) as {name}"
            if name in changes
            else name
            for name, kind in self.columns(relation).items()
        )


@dataclass(frozen=True)
class DataTest:
    """A data test as the manifest has it, and the relation that it is of."""

    node: dict[str, Any]
    relation: str
    described: dict[str, Any]

    @property
    def where(self) -> str:
        """The rows that the test is limited to."""
        return str(self.node["config"].get("where") or "true")

    @property
    def arguments(self) -> dict[str, Any]:
        return dict((self.node.get("test_metadata") or {}).get("kwargs", {}))


def required_columns(test: DataTest, lake: Lake) -> Iterator[Fault]:
    wanted = {
        name: "true"
        for name, column in test.described["columns"].items()
        if any(rule["type"] == "not_null" for rule in column["constraints"])
    }
    for condition, names in test.arguments.get("columns_where", {}).items():
        wanted.update(dict.fromkeys(names, condition))
    for condition in set(wanted.values()):
        names = {name for name in wanted if wanted[name] == condition}
        fault = lake.added(test.relation, dict.fromkeys(names, "null"), condition)
        yield replace(fault, caught=partial(_names_all, names))


def _names_all(columns: set[str], rows: list[Row]) -> bool:
    return {column for row in rows for column in _null_columns(row)} == columns


def _null_columns(row: Row) -> Iterator[str]:
    for name, count in row.items():
        if name.endswith("__null_count") and count:
            yield name.removesuffix("__null_count")


def key_and_required_columns(test: DataTest, lake: Lake) -> Iterator[Fault]:
    yield from required_columns(test, lake)
    key = set(test.arguments["key"])
    yield replace(lake.added(test.relation, {}), caught=partial(_shows_a_double, key))


def _shows_a_double(key: set[str], rows: list[Row]) -> bool:
    (row,) = rows
    return row["_row_count"] == 2 and row.keys() >= key and not list(_null_columns(row))


def unique_combination(test: DataTest, lake: Lake) -> Iterator[Fault]:
    yield lake.added(test.relation, {}, test.where)


def unique(test: DataTest, lake: Lake) -> Iterator[Fault]:
    column = test.arguments["column_name"]
    yield lake.added(test.relation, {}, f"{column} is not null")


def of_a_strange_value(test: DataTest, lake: Lake) -> Iterator[Fault]:
    column = test.arguments["column_name"]
    kind = lake.columns(test.relation)[column].partition("(")[0]
    yield lake.added(test.relation, {column: _STRANGE[kind]})


def sums(test: DataTest, lake: Lake) -> Iterator[Fault]:
    for column in test.arguments["sums"]:
        yield lake.changed(test.relation, {column: f"{column} + 1"})
    yield lake.removed(test.relation)


def on_grid(test: DataTest, lake: Lake) -> Iterator[Fault]:
    for column in ("window_start_at", "window_end_at"):
        yield lake.changed(test.relation, {column: f"{column} + interval 1 second"})


def casts_keep(test: DataTest, lake: Lake) -> Iterator[Fault]:
    source = re.findall(r"'(\w+)'", test.arguments["of"])
    raw = lake.columns(f"bronze.{'__'.join(source)}")
    renamed = test.arguments.get("renamed", {})
    for name in (name for name in raw if not name.startswith("_")):
        column = renamed.get(name, name)
        there = f"{column} is not null"
        yield lake.changed(test.relation, {column: "null"}, there)
    yield lake.removed(test.relation)


def holds_all_of_stream(test: DataTest, lake: Lake) -> Iterator[Fault]:
    key = test.arguments["key"]
    kind = lake.columns(test.relation)[key].partition("(")[0]
    yield lake.removed(test.relation)
    yield lake.added(test.relation, {key: _STRANGE[kind]})
    for column in test.arguments.get("same", []):
        yield lake.changed(test.relation, {column: _STRANGE["string"]})


def in_newest_snapshot(test: DataTest, lake: Lake) -> Iterator[Fault]:
    (changes,) = re.findall(r"'(\w+)'", test.arguments["changes"])
    of_held = {
        "version_key": "'7-'",
        # Before those of all other rows, as is that of the snapshot.
        "valid_from_position": "''",
        "seen_to_position": "''",
        "is_current": "true",
        "is_deleted": "false",
    }
    of_snapshot = {"change_kind": "'snapshot'", "source_position": "'0'"}
    yield replace(
        lake.added(test.relation, of_held),
        beside=lake.added(f"staging.{changes}", of_snapshot),
        caught=lambda rows: [row["row_key"] for row in rows] == ["7"],
    )


def holds_all_of_current(test: DataTest, lake: Lake) -> Iterator[Fault]:
    yield lake.removed(test.relation)
    for column in [test.arguments["key"], *test.arguments["same"]]:
        kind = lake.columns(test.relation)[column].partition("(")[0]
        yield lake.changed(test.relation, {column: _STRANGE[kind]})


def accepted_range(test: DataTest, lake: Lake) -> Iterator[Fault]:
    for edge, beyond in (("min_value", "- 1"), ("max_value", "+ 1")):
        if edge in test.arguments:
            value = f"{test.arguments[edge]} {beyond}"
            yield lake.added(test.relation, {test.arguments["column_name"]: value})


GENERIC: dict[str, Callable[[DataTest, Lake], Iterator[Fault]]] = {
    "accepted_range": accepted_range,
    "accepted_values": of_a_strange_value,
    "casts_keep": casts_keep,
    "holds_all_of_current": holds_all_of_current,
    "holds_all_of_stream": holds_all_of_stream,
    "in_newest_snapshot": in_newest_snapshot,
    "key_and_required_columns": key_and_required_columns,
    "on_grid": on_grid,
    "relationships": of_a_strange_value,
    "required_columns": required_columns,
    "sums_equal": sums,
    "moments_fit": moments_fit,
    "text_keys_stay_apart": text_keys_stay_apart,
    "texts_fit": texts_fit,
    "unique": unique,
    "unique_combination": unique_combination,
    "windows_hold": sums,
}

_PRODUCTS = "marts.dim_products"


def of_entry(entry: dict[str, Any], lake: Lake) -> Fault:
    """A fault as `mutations.yml` has it."""
    where = entry.get("where", "true")
    if "versions" in entry:
        return lake.versions(*entry["versions"])
    if "removed" in entry:
        return lake.removed(entry["file"], where)
    if "added" in entry:
        return lake.added(entry["file"], entry["added"], where)
    return lake.changed(entry["file"], entry["changed"], where)


def relation_of(node: dict[str, Any]) -> str:
    return f"{node['schema']}.{node.get('identifier') or node['alias']}"


def returned(spark: SparkSession, query: str) -> list[Row]:
    return [row.asDict() for row in spark.sql(query).collect()]


def planted(lake: Lake, query: str, fault: Fault) -> list[Row]:
    """What a test returns where a relation has a fault."""
    view = f"planted_in_{fault.relation.replace('.', '_')}"
    lake.spark.sql(
        f"create or replace temporary view {view} as " + fault.query.format(rows=fault.relation)
    )
    name = rf"(?<![\w.`]){re.escape(fault.relation)}(?![\w`])"
    at_fault, count = re.subn(name, view, query)
    assert count, f"the test does not read {fault.relation}:\n{query}"
    if fault.beside:
        return planted(lake, at_fault, fault.beside)
    return returned(lake.spark, at_fault)


def test_every_data_test_catches_its_fault(
    stack: Stack, demo: DemoRun, spark: SparkSession
) -> None:
    bronze = Bronze(seed=1)
    bronze.commit_all(bronze.captured.first())
    for step in bronze.steps:
        write, table = (append, "commit") if "commit" in step else (add, "add")
        write(spark, step[table], step["rows"])
    # The demo leaves some tests out.
    brief(stack).run("dbt", "build")
    manifest = json.loads((target_folder(PROJECT) / "manifest.json").read_text())
    described = {**manifest["nodes"], **manifest["sources"]}
    lake = Lake(spark)
    missed, tried, singular = [], Counter[str](), entries("data_tests")

    for node in manifest["nodes"].values():
        if node["resource_type"] != "test":
            continue
        kind = (node.get("test_metadata") or {}).get("name")
        query = node["compiled_code"]
        faults = []
        if kind:
            of = described[node["attached_node"] or node["depends_on"]["nodes"][0]]
            test = DataTest(node, relation_of(of), of)
            faults = list(GENERIC[kind](test, lake))
        for entry in () if kind else singular[node["name"]]:
            if "old" not in entry:
                faults.append(of_entry(entry, lake))
                continue
            # What is at fault is the macro that the test tries.
            assert entry["old"] in query, node["name"]
            tried[node["name"]] += 1
            if not returned(spark, query.replace(entry["old"], entry["new"])):
                missed.append(f"{node['name']}: {entry['new']} in place of {entry['old']}")
        if node["name"] == "assert_product_versions_do_not_overlap":
            assert planted(lake, query, lake.versions({}, {})) == []
        for fault in faults:
            rows = planted(lake, query, fault)
            tried[node["name"]] += 1
            if not fault.caught(rows):
                missed.append(f"{node['name']}: {fault.query}: {rows}")

    print(f"{tried.total()} faults of {len(tried)} data tests")
    assert not missed, "\n".join(missed)
    assert all(tried.values())
