"""A mart exported as plain files, by partition, for whoever reads no Iceberg.

Fails when an exported file differs from its mart, or keeps a partition that the mart lost.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from sandbox.settings import PROJECT, Home
from tests.python.conftest import program_environment
from tests.python.programs import ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.nightly

MART = "lake.marts.dim_artworks"
COLUMNS = yaml.safe_load((PROJECT / "models/marts/museum/dim_artworks.yml").read_text())["models"][
    0
]["columns"]


@pytest.fixture
def mart(spark: SparkSession) -> str:
    described = ", ".join(f"{c['name']} {c['data_type']}" for c in COLUMNS)
    spark.sql("create schema if not exists lake.marts")
    spark.sql(f"create or replace table {MART} ({described}) using iceberg")
    return MART


def fill(spark: SparkSession, *rows: str) -> None:
    spark.sql(f"delete from {MART}")
    for row in rows:
        names = "artwork_id, artwork_title, height_cm, classification"
        spark.sql(f"insert into {MART} ({names}) values {row}")


def export(home: Home, to: Path, tmp_path: Path, **more: str | list[str]) -> str:
    arguments = {"model": "dim_artworks", "to": str(to), "partition_by": "classification", **more}
    done = ran(
        [
            str(Path(sys.executable).with_name("dbt")),
            *("--quiet", "run-operation", "export_rows"),
            *("--target-path", str(tmp_path / "target")),
            *("--args", json.dumps(arguments)),
        ],
        env=program_environment(home),
    )
    return done.stdout + done.stderr


def test_an_export_is_what_the_mart_holds_by_partition(
    home: Home, spark: SparkSession, mart: str, tmp_path: Path
) -> None:
    to = tmp_path / "art works"
    fill(
        spark,
        "(1, 'Roots', 12.3456789012, 'Painting')",
        "(2, 'Été', null, 'Film: a/b')",
        "(3, null, 1, null)",
    )

    first = export(home, to, tmp_path)
    written = spark.read.parquet(str(to))

    assert "Exported dim_artworks" in first
    assert sorted(path.name for path in to.glob("classification=*")) == [
        "classification=Film%3A a%2Fb",
        "classification=Painting",
        "classification=__HIVE_DEFAULT_PARTITION__",
    ]
    chosen = [column["name"] for column in COLUMNS]
    assert sorted(map(str, written.select(chosen).collect())) == sorted(
        map(str, spark.table(mart).select(chosen).collect())
    )
    assert dict(written.dtypes)["height_cm"] == "decimal(18,10)"

    # What is gone from the mart is gone from the files, its partition too.
    fill(spark, "(1, 'Roots', 12.3456789012, 'Painting')")
    export(home, to, tmp_path)

    assert [row.artwork_id for row in spark.read.parquet(str(to)).collect()] == [1]
    assert [path.name for path in to.glob("classification=*")] == ["classification=Painting"]


def test_files_lie_in_folders_of_several_columns(
    home: Home, spark: SparkSession, mart: str, tmp_path: Path
) -> None:
    to = tmp_path / "by both"
    fill(spark, "(1, 'Roots', 12.5, 'Painting')", "(2, 'Été', null, 'Film')")

    said = export(home, to, tmp_path, partition_by=["classification", "artwork_title"])

    assert "by classification, artwork_title" in said
    assert sorted(str(path.relative_to(to)) for path in to.glob("*=*/*=*")) == [
        "classification=Film/artwork_title=Été",
        "classification=Painting/artwork_title=Roots",
    ]
    found = spark.read.parquet(str(to)).orderBy("artwork_id").collect()
    assert [(row.artwork_id, row.height_cm) for row in found] == [(1, Decimal("12.5")), (2, None)]


def test_what_cannot_be_exported_is_said(home: Home, tmp_path: Path) -> None:
    absent = export(home, tmp_path / "x", tmp_path, model="dim_absent")
    other = export(home, tmp_path / "x", tmp_path, partition_by="colour")

    assert "no model with a contract is named dim_absent" in absent
    assert "dim_artworks has no column colour" in other
