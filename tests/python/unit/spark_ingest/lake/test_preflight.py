"""Java, Spark and the disk are checked before a JVM starts, with the fix in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_ingest import cli
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import preflight

VERSIONS = {
    8: 'openjdk version "1.8.0_392"',
    11: 'openjdk version "11.0.22" 2024-01-16',
    17: 'openjdk version "17.0.15" 2025-04-15',
    21: 'openjdk version "21" 2023-09-19',
    25: 'openjdk version "25.0.1" 2025-10-21 LTS',
}


def fake_java(folder: Path, says: str, exit_code: int = 0) -> Path:
    """A ``java`` that answers as the real one does: on standard error."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {exit_code}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but the one that a test makes."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(preflight, "_installed_jdks", list)


@pytest.mark.parametrize("version", [17, 21])
def test_a_fitting_java_on_path_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int
) -> None:
    program = fake_java(tmp_path / "jdk", VERSIONS[version])
    monkeypatch.setenv("PATH", str(program.parent))

    assert preflight.check_java() == version
    assert preflight.java_program() == program


@pytest.mark.parametrize("version", [8, 11, 25])
def test_another_java_is_refused_with_its_version_and_the_needed_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int
) -> None:
    program = fake_java(tmp_path / "jdk", VERSIONS[version])
    monkeypatch.setenv("PATH", str(program.parent))

    with pytest.raises(ConfigurationError) as caught:
        preflight.check_java()

    assert f"{program} is Java {version}; Millrace needs a JDK 17 or 21" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_java_at_all_says_what_to_install() -> None:
    with pytest.raises(ConfigurationError, match=r"no java on PATH.*JDK 17 or 21.*install"):
        preflight.check_java()


def test_java_home_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "old", VERSIONS[11]).parent))
    fake_java(tmp_path / "new", VERSIONS[21])
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))

    assert preflight.check_java() == 21


def test_a_java_home_without_java_is_refused_though_path_has_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "jdk", VERSIONS[17]).parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))

    with pytest.raises(ConfigurationError, match=r"JAVA_HOME is .*gone"):
        preflight.check_java()


def test_a_java_that_only_says_where_to_get_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub = fake_java(tmp_path / "mac", "Unable to locate a Java Runtime.", exit_code=1)
    monkeypatch.setenv("PATH", str(stub.parent))

    with pytest.raises(ConfigurationError, match="prints no version; Millrace needs a JDK"):
        preflight.check_java()


def test_an_installed_fitting_jdk_is_proposed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preflight, "_installed_jdks", lambda: [tmp_path / "jdk-21"])

    with pytest.raises(ConfigurationError, match=f"export JAVA_HOME={tmp_path}/jdk-21"):
        preflight.check_java()


def test_spark_home_of_another_spark_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    with pytest.raises(ConfigurationError, match=f"SPARK_HOME is {tmp_path}.*unset SPARK_HOME"):
        preflight.check_spark_home()


def test_no_spark_home_and_our_own_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check_spark_home()
    monkeypatch.setenv("SPARK_HOME", str(preflight.pyspark_folder()))

    preflight.check_spark_home()

    assert preflight.pyspark_folder().is_relative_to(sys.prefix)


def test_a_cluster_s_spark_that_brings_its_pyspark_is_fine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preflight, "pyspark_folder", lambda: tmp_path / "python/pyspark")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    preflight.check_spark_home()


@pytest.mark.parametrize(("version", "is_same"), [("4.1.1", True), ("4.0.1", False)])
def test_another_spark_is_fine_if_its_version_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, is_same: bool
) -> None:
    cluster, own = tmp_path / "cluster", tmp_path / "venv/pyspark"
    for home, its in ((cluster, version), (own, "4.1.1")):
        (home / "jars").mkdir(parents=True)
        (home / f"jars/spark-core_2.13-{its}.jar").touch()
    monkeypatch.setattr(preflight, "pyspark_folder", lambda: own)
    monkeypatch.setenv("SPARK_HOME", str(cluster))
    if is_same:
        preflight.check_spark_home()
        return
    with pytest.raises(ConfigurationError, match=r"is Spark 4\.0\.1, .* is 4\.1\.1: .*pyspark==4"):
        preflight.check_spark_home()


def test_a_command_without_pyspark_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(preflight, "find_spec", lambda _: None)
    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("spark-ingest: pyspark is not installed in this")


def test_a_spark_of_another_version_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        # As Spark 3.5, which has no such module.
        raise ModuleNotFoundError("No module named 'pyspark.logger'", name="pyspark.logger")

    preflight.check_pyspark()
    monkeypatch.setattr("pyspark.version.__version__", "3.5.6")
    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit):
        cli.main()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "is Spark 3.5.6: Millrace needs Spark 4.0 or 4.1" in lines[0]
    monkeypatch.setattr("pyspark.version.__version__", "4.0.1")
    preflight.check_pyspark()
    with pytest.raises(ModuleNotFoundError):
        cli.main()


def test_no_pyspark_at_all_names_the_ways_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda _: None)

    with pytest.raises(ConfigurationError, match=r"millrace\[spark\].*PYTHONPATH"):
        preflight.check_spark_home()


def test_a_nearly_full_disk_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = tmp_path / "not yet" / "there"
    free = preflight.check_disk(wanted)
    monkeypatch.setenv("MILLRACE_MIN_FREE_MB", str(free // 1024**2 + 10_000))

    with pytest.raises(
        ConfigurationError, match=r"only \d+ MB are free on the disk of .*free some space"
    ):
        preflight.check_disk(wanted)


def test_an_unreadable_disk_limit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MILLRACE_MIN_FREE_MB", "1G")

    with pytest.raises(ConfigurationError, match="MILLRACE_MIN_FREE_MB is '1G'"):
        preflight.check_disk(tmp_path)
