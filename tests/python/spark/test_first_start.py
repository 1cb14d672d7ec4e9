"""A Spark that is started by hand on a machine where no part was fetched yet.

Fails when a Spark without JARs does not fetch them, or loads its classes from no archive.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.install import class_archive, parts, spark_conf
from sandbox.settings import PROJECT, Home
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.jvm import CATALOG
from spark_ingest.lake.session import all_executors_have, require_class
from tests.python.programs import ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Where nobody sits before it, the shell makes no session.
SESSION = "import pyspark.sql as s\ns.SparkSession.builder.getOrCreate()"
# What people type first: words, input, exit code, and what it says of the lake.
FIRST = {
    "spark-sql": (["-e", "create namespace made; show namespaces"], "", 0, "made"),
    "pyspark": ([], SESSION + ".sql('create namespace made')\nprint('it ' + 'is')\n", 0, "it is"),
    "dbt": (["show", "--inline", "select 'made' as named"], "", 0, "| made "),
    "spark-ingest": (["quarantine", "list"], "", 2, "bronze.quarantine does not exist"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("program", FIRST)
def test_a_first_command_with_an_empty_cache_fetches_the_jars_and_opens_the_lake(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    # What Ivy fetched for the other tests need not come over the network again.
    known = parts.cache_folder() / "ivy"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ca che"))
    shutil.copytree(known, parts.cache_folder() / "ivy")
    conf = tmp_path / "conf"
    spark_conf.render(Home(tmp_path / "home"), conf)
    assert parts.missing(["spark"]) == ["spark"]
    words, typed, code, wanted = FIRST[program]
    folder = Path(sys.executable).parent

    done = ran(
        [str(folder / program), *words],
        env=os.environ
        | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "SPARK_CONF_DIR": str(conf),
            "SANDBOX_HOME": str(tmp_path / "home"),
            "DBT_PROFILES_DIR": str(PROJECT / "profiles"),
            "DBT_TARGET_PATH": str(tmp_path / "target"),
            "DBT_LOG_PATH": str(tmp_path / "logs"),
        },
        stdin=typed,
        timeout=300,
    )

    reported = done.stdout + done.stderr
    assert done.returncode == code, reported
    assert "Fetching spark from Maven Central, once" in reported
    assert "Archiving Spark's classes for Java, once" in reported
    assert wanted in reported
    assert parts.missing(["spark"]) == []
    assert class_archive.archive_file().stat().st_size > 100_000_000


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc to look at")
def test_a_spark_of_this_environment_takes_its_classes_from_the_archive(
    spark: SparkSession,
) -> None:
    process: Any = spark._jvm
    pid = process.java.lang.ProcessHandle.current().pid()

    assert str(class_archive.archive_file()) in Path(f"/proc/{pid}/maps").read_text()


def test_a_spark_without_icebergs_classes_is_refused_with_the_fix(spark: SparkSession) -> None:
    require_class(spark, spark.conf.get(f"spark.sql.catalog.{CATALOG}"))

    with pytest.raises(ConfigurationError) as caught:
        require_class(spark, "org.apache.iceberg.spark.NoSuchCatalog")

    assert "has no class org.apache.iceberg.spark.NoSuchCatalog" in str(caught.value)
    assert "`sandbox parts spark`" in str(caught.value)


def test_the_executors_are_asked_for_the_catalog_s_class(spark: SparkSession) -> None:
    assert all_executors_have(spark, "org.apache.iceberg.spark.SparkCatalog")
    assert not all_executors_have(spark, "org.apache.iceberg.spark.NoSuchCatalog")
