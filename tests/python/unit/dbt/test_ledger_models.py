"""The ledger's own arithmetic, made by DuckDB of a few commits and positions."""

from __future__ import annotations

from pathlib import Path

import duckdb
import jinja2

from docs.generate.domain_pages import Manifest
from sandbox.settings import PROJECT

MODELS = (
    "intermediate/ops/int_ops__ranges_held",
    "marts/ops/rpt_ingest_gaps",
    "marts/ops/rpt_ingest_ledger",
)
# Commit, first and end offset, and how many of these held no record.
COMMITS = [(1, 0, 5, 0), (2, 5, 10, 2)]
COUNTS = "gap_count, empty_count, duplicate_count, uncommitted_count"


def ledger(*offsets: int) -> tuple[int, ...]:
    """The counts of a table of one partition that holds these offsets."""
    lake = duckdb.connect()
    commits = ", ".join(str(commit) for commit in COMMITS)
    lake.execute(
        "create table rpt_ingest_commits as select *, 't' as bronze_table, 't' as kafka_topic,"
        " 'T' as kafka_topic_id, 0 as kafka_partition, 'stream' as commit_kind,"
        " timestamp '2026-01-01 00:00:00' as committed_at"
        f" from (values {commits})"
        " as rows (commit_id, first_offset, end_offset, commit_empty_count)"
    )
    places = ", ".join(f"({offset})" for offset in offsets)
    lake.execute(
        "create table stg_ingest__records as select *, 't' as bronze_table, 't' as _kafka_topic,"
        " 'T' as _kafka_topic_id, 0 as _kafka_partition, 1 as _commit_id"
        f" from (values {places}) as rows (_kafka_offset)"
    )
    lake.execute(
        "create table stg_ingest__quarantine (_kafka_topic varchar, _kafka_topic_id varchar,"
        " _kafka_partition integer, _kafka_offset bigint, replayed_at timestamp)"
    )
    lake.execute("create view int_ops__commit_ranges_counted as from rpt_ingest_commits")
    lake.execute(
        "create table int_ops__quarantined_records_sorted (kafka_topic varchar,"
        " _kafka_topic_id varchar, _kafka_partition integer, quarantine_state varchar)"
    )
    for model in MODELS:
        text = (PROJECT / f"models/{model}.sql").read_text()
        query = jinja2.Template(text).render(ref=lambda name: name, config=lambda **_: "")
        lake.execute(f"create table {Path(model).name} as {query}")
    (row,) = lake.execute(f"select {COUNTS} from rpt_ingest_ledger").fetchall()
    return tuple(int(count) for count in row)


def test_every_offset_once_is_a_ledger_that_balances() -> None:
    assert ledger(*range(10)) == (0, 0, 0, 0)


def test_an_offset_that_no_table_holds_is_a_gap() -> None:
    assert ledger(0, 1, 3, 4, *range(5, 10)) == (1, 0, 0, 0)


def test_a_commit_explains_as_many_as_held_no_record() -> None:
    assert ledger(*range(5), 5, 8, 9) == (0, 2, 0, 0)


def test_an_offset_that_is_there_twice_and_one_of_no_commit_are_counted() -> None:
    assert ledger(*range(10), 3, 12) == (0, 0, 1, 1)


def test_bronze_is_read_once_and_after_the_log_was_copied(manifest: Manifest) -> None:
    models = {node["name"]: node for node in manifest["nodes"].values()}

    def parents(name: str) -> set[str]:
        return {parent.split(".")[-1] for parent in models[name]["depends_on"]["nodes"]}

    log, ranges = "int_ops__commit_ranges_counted", "int_ops__ranges_held"
    assert log in parents(ranges)
    assert {models[name]["config"]["materialized"] for name in (log, ranges)} == {"table"}
    assert parents("rpt_ingest_commits") == {log}
    assert parents("rpt_ingest_gaps") == {"rpt_ingest_commits", ranges}
    assert "stg_ingest__records" not in parents("rpt_ingest_ledger")
