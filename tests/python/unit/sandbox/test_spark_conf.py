"""The lake's settings, rendered with absolute paths."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.install import class_archive, spark_conf
from sandbox.install.parts import component_folder
from sandbox.settings import Home
from spark_ingest.errors import ServiceUnavailable
from spark_ingest.lake.preflight import pyspark_folder
from tests.python.programs import ran


def settings_of(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {key: value.strip() for key, _, value in (line.partition(" ") for line in lines)}


def test_every_mark_is_filled_and_paths_keep_their_blanks(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home")

    file = spark_conf.render(home, home.spark_conf)

    settings = settings_of(file)
    assert not [value for value in settings.values() if "${" in value]
    assert settings["spark.sql.catalog.lake.warehouse"] == f"{home.path}/lake/warehouse"
    ours, sparks = settings["spark.driver.extraClassPath"].split(":")
    assert ours == f"{component_folder('spark')}/*"
    assert sparks == f"{spark_conf.environment_conf().parent}/jars/*"
    assert (
        f'"-XX:SharedArchiveFile={class_archive.archive_file()}"'
        in settings["spark.driver.extraJavaOptions"]
    )
    assert home.lake.is_dir()
    assert (home.spark_conf / "log4j2.properties").is_file()


def test_the_rendered_home_is_read_back(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home")
    spark_conf.render(home, home.spark_conf)

    assert spark_conf.rendered_home(home.spark_conf) == home.path
    assert spark_conf.rendered_home(tmp_path / "nowhere") is None
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[2]\n")
    assert spark_conf.rendered_home(tmp_path) is None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ca che"))
    return tmp_path / "ca che"


@pytest.fixture
def conf(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rendered configuration whose Python only says what it was asked for."""
    python = tmp_path / "py thon"
    python.write_text('#!/bin/sh\necho "python $*"\nexit "${FETCH_EXIT:-0}"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    spark_conf.render(Home(tmp_path / "a home"), tmp_path / "conf")
    return tmp_path / "conf"


def launch(conf: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What Spark's launcher does: it reads the start-up file, then starts Java."""
    return ran(
        ["bash", "-c", f"set -a; . {conf}/spark-env.sh; set +a; echo java"],
        env={**os.environ, **variables},
    )


def put_spark_parts(*names: str) -> Path:
    folder = component_folder("spark")
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("jar")
    listed = dict.fromkeys(names, (3, "digest"))
    folder.with_suffix(".json").write_text(json.dumps(listed, indent=1) + "\n")
    class_archive.archive_file().touch()
    return folder


def test_a_spark_without_its_jars_fetches_them_before_java_starts(conf: Path) -> None:
    done = launch(conf)

    assert done.returncode == 0
    # Nothing of it goes where a statement's rows go.
    assert done.stdout == "java\n"
    assert done.stderr == "python -P -m sandbox.install.spark_conf --fetch\n"


def test_a_spark_whose_jars_cannot_be_fetched_does_not_start(conf: Path) -> None:
    done = launch(conf, FETCH_EXIT="2")

    assert done.returncode == 2
    assert "java" not in done.stdout


def test_a_spark_with_its_jars_starts_at_once(conf: Path) -> None:
    put_spark_parts("a.jar", "b.jar")

    done = launch(conf)

    assert class_archive.is_current()
    assert (done.returncode, done.stdout, done.stderr) == (0, "java\n", "")


def test_a_spark_fetches_again_what_went_from_the_cache(conf: Path) -> None:
    (put_spark_parts("a.jar", "b.jar") / "a.jar").unlink()

    assert "--fetch" in launch(conf).stderr


def test_a_spark_whose_classes_were_never_archived_archives_them(conf: Path) -> None:
    put_spark_parts("a.jar", "b.jar")
    class_archive.archive_file().unlink()

    assert "--fetch" in launch(conf).stderr


@pytest.mark.parametrize("installed", ["the lake's", "PySpark's"])
def test_a_spark_with_jars_newer_than_their_archive_archives_them_again(
    conf: Path, installed: str
) -> None:
    lakes = put_spark_parts("a.jar", "b.jar")
    archive, sparks = class_archive.archive_file(), pyspark_folder() / "jars"
    written = sparks.stat().st_mtime + (10 if installed == "the lake's" else -10)
    os.utime(archive, (written, written))
    added = written + (10 if installed == "the lake's" else -10)
    os.utime(lakes, (added, added))

    assert not class_archive.is_current()
    assert "--fetch" in launch(conf).stderr


def test_jars_fetched_to_another_cache_are_where_spark_looks(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "moved"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    asked: list[list[str]] = []
    monkeypatch.setattr(spark_conf, "fetch", asked.append)
    monkeypatch.setattr(class_archive, "write", lambda _conf: True)
    (tmp_path / "moved/millrace").mkdir(parents=True)

    assert spark_conf.main(["--fetch"]) == 0

    assert asked == [["spark"]]
    settings = settings_of(conf / "spark-defaults.conf")
    assert settings["spark.driver.extraClassPath"].startswith(f"{tmp_path}/moved/")
    assert f"{tmp_path}/moved/" in (conf / "spark-env.sh").read_text()
    assert settings["spark.millrace.home"] == str(tmp_path / "a home")


def test_jars_that_cannot_be_downloaded_are_reported_in_one_line(
    conf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))

    def no_network(_names: list[str]) -> list[str]:
        raise ServiceUnavailable("Maven Central cannot be reached: check the network")

    monkeypatch.setattr(spark_conf, "fetch", no_network)

    assert spark_conf.main(["--fetch"]) == 2

    assert capsys.readouterr().err == (
        "error: Maven Central cannot be reached: check the network\n"
    )


@pytest.mark.parametrize(("folder", "fetched"), [("conf", False), ("co nf", True)])
def test_installing_fetches_only_where_spark_reads_no_start_up_file(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, fetched: bool
) -> None:
    monkeypatch.setenv("SANDBOX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(spark_conf, "environment_conf", lambda: tmp_path / folder)
    asked: list[list[str]] = []
    monkeypatch.setattr(spark_conf, "fetch", asked.append)

    assert spark_conf.main([]) == 0

    assert (asked == [["spark"]]) == fetched
    assert (tmp_path / folder / "spark-env.sh").exists() != fetched


def test_ctrl_c_ends_the_fetch_though_pyspark_had_it_ignored(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))

    def interrupted(_names: list[str]) -> list[str]:
        signal.raise_signal(signal.SIGINT)
        return []

    monkeypatch.setattr(spark_conf, "fetch", interrupted)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert spark_conf.main(["--fetch"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
