"""The archive of Spark's classes: one for each environment, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.install import class_archive, spark_conf
from sandbox.settings import Home


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ca che"))
    (tmp_path / "ca che/millrace").mkdir(parents=True)
    return tmp_path / "ca che/millrace"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    spark_conf.render(Home(tmp_path / "home"), tmp_path / "conf")
    return tmp_path / "conf"


def use_python(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Path:
    """In place of the work that Spark does."""
    python = folder / "py thon"
    python.write_text(f"#!/bin/sh\necho once >> '{folder}/calls'\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    return folder / "calls"


def test_the_archive_is_written_once_where_the_settings_look_for_it(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = class_archive.archive_file().with_suffix(".new")
    asked = f"grep -q -e '{class_archive.WRITES}{written}' \"$SPARK_CONF_DIR\"/*.conf"
    calls = use_python(monkeypatch, tmp_path, f"{asked} && echo all > '{written}'")

    assert class_archive.write(conf)
    assert not class_archive.write(conf)

    assert class_archive.archive_file().read_text() == "all\n"
    assert calls.read_text() == "once\n"


def test_a_java_without_archives_is_reported_and_not_tried_again(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = use_python(monkeypatch, tmp_path, "exit 1")

    assert class_archive.write(conf)
    assert not class_archive.write(conf)

    assert "Java wrote no archive of Spark's classes" in capsys.readouterr().err
    assert class_archive.archive_file().stat().st_size == 0
    assert calls.read_text() == "once\n"


def test_another_java_has_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = class_archive.archive_file()
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))

    assert class_archive.archive_file() != before


def test_archives_of_environments_that_are_gone_are_removed(
    cache: Path, conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_python(monkeypatch, tmp_path, "exit 1")
    for name, jars in (("gone", tmp_path / "nowhere"), ("kept", tmp_path)):
        (cache / f"classes-{name}.jsa").touch()
        (cache / f"classes-{name}.json").write_text(f'{{"jars": "{jars}"}}')

    class_archive.write(conf)

    left = {file.name for file in cache.glob("classes-*.jsa")}
    assert left == {"classes-kept.jsa", class_archive.archive_file().name}
    assert not (cache / "classes-gone.json").exists()
