"""Parts are complete or not, fetched once, and installed whole."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from sandbox.install import ivy, parts
from spark_ingest.errors import ConfigurationError, ServiceUnavailable


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ca che"))
    monkeypatch.setattr(parts, "check_java", lambda: 17)
    return tmp_path / "ca che" / "millrace"


class Ivy:
    """In place of Ivy: writes a jar for each component, an archive for the registry."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[list[str]] = []
        self.fails = False
        monkeypatch.setattr(parts, "run_ivy", self)

    def __call__(
        self,
        names: list[str],
        _file: Path,
        _settings: Path,
        _cache: Path,
        into: Path,
        _log: Path,
        _lock: int,
    ) -> None:
        self.asked.append(list(names))
        for name in names:
            (into / name).mkdir()
            (into / name / f"{name}.jar").write_bytes(name.encode() * 100)
            if self.fails:
                raise ServiceUnavailable("no network")
        if "registry" in names:
            inner = into / "runner.jar"
            inner.write_bytes(b"runner")
            with tarfile.open(into / "registry" / "app-1.tar.gz", "w:gz") as tar:
                tar.add(inner, "lib/runner.jar")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Ivy:
    return Ivy(monkeypatch)


def test_the_components_are_the_configurations_of_the_ivy_file() -> None:
    assert parts.components()[:3] == ("spark", "kafka", "registry")
    with pytest.raises(ConfigurationError, match="no component 'sparc'; known: spark, kafka"):
        parts.component_folder("sparc")


def test_what_only_tests_need_is_fetched_by_its_name_alone() -> None:
    assert "aws" not in parts.components()
    assert "aws" not in parts.missing()
    assert parts.component_folder("aws").name == "aws"


def test_parts_live_in_the_users_cache_by_version(cache: Path) -> None:
    folder = parts.component_folder("kafka")

    assert folder.is_relative_to(cache)
    assert folder.parent.name.startswith("parts-")


def test_other_coordinates_are_other_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = parts.version_folder()
    changed = tmp_path / "ivy.xml"
    changed.write_text(parts.IVY_FILE.read_text().replace('rev="4.1.1"', 'rev="4.1.2"'))
    monkeypatch.setattr(parts, "IVY_FILE", changed)

    assert parts.version_folder() != before


def test_what_is_complete_is_not_fetched_again(fake: Ivy) -> None:
    assert parts.fetch(["kafka"]) == ["kafka"]
    assert parts.fetch(["kafka", "spark"]) == ["spark"]
    assert parts.fetch(["kafka", "spark"]) == []

    assert fake.asked == [["kafka"], ["spark"]]


def test_a_component_of_two_services_is_fetched_once(fake: Ivy) -> None:
    assert parts.fetch(["kafka", "spark", "kafka"]) == ["kafka", "spark"]


@pytest.mark.parametrize("harm", ["gone", "shorter"])
def test_a_missing_or_cut_file_makes_the_component_incomplete(fake: Ivy, harm: str) -> None:
    parts.fetch(["kafka"])
    file = parts.component_folder("kafka") / "kafka.jar"

    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(b"kafka")

    assert parts.missing(["kafka"]) == ["kafka"]
    assert parts.fetch(["kafka"]) == ["kafka"]
    assert parts.missing(["kafka"]) == []


def test_a_changed_byte_is_found_by_its_hash_and_mended(fake: Ivy) -> None:
    parts.fetch(["kafka"])
    file = parts.component_folder("kafka") / "kafka.jar"
    content = file.read_bytes()
    file.write_bytes(b"X" + content[1:])

    assert parts.is_complete("kafka")
    assert parts.damaged("kafka") == ["kafka.jar"]
    parts.remove("kafka")
    parts.fetch(["kafka"])
    assert parts.damaged("kafka") == []
    assert file.read_bytes() == content


def test_an_archive_is_unpacked_and_its_files_are_listed(fake: Ivy) -> None:
    parts.fetch(["registry"])
    folder = parts.component_folder("registry")

    assert (folder / "lib/runner.jar").read_bytes() == b"runner"
    assert not list(folder.glob("*.tar.gz"))
    (folder / "lib/runner.jar").write_bytes(b"RUNNER")
    assert parts.damaged("registry") == ["lib/runner.jar"]


def test_a_failed_fetch_leaves_nothing_half_made(fake: Ivy) -> None:
    fake.fails = True

    with pytest.raises(ServiceUnavailable):
        parts.fetch(["kafka", "spark"])

    assert parts.missing(["kafka", "spark"]) == ["kafka", "spark"]
    assert not list(parts.version_folder().glob("incoming-*"))


def test_what_a_killed_fetch_left_is_removed(fake: Ivy) -> None:
    leftover = parts.version_folder() / "incoming-killed" / "kafka"
    leftover.mkdir(parents=True)

    parts.fetch(["spark"])

    assert not leftover.exists()


def test_two_at_once_fetch_once(fake: Ivy) -> None:
    threads = [threading.Thread(target=parts.fetch, args=(["kafka"],)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fake.asked == [["kafka"]]


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (
            "\t\tjava.net.UnknownHostException: repo1.maven.org",
            ServiceUnavailable,
            "cannot be reached (UnknownHostException)",
        ),
        (
            "Server access error at url https://repo1.maven.org/x (java.net.ConnectException)",
            ServiceUnavailable,
            "check the network",
        ),
        (
            (
                "\tHost repo1.maven.org not found. url=https://repo1.maven.org/maven2/x.pom\n"
                "\t\t:: org.apache.kafka#kafka_2.13;4.1.1: not found"
            ),
            ServiceUnavailable,
            "cannot be reached (Host repo1.maven.org not found)",
        ),
        ("java.io.IOException: No space left on device", ConfigurationError, "disk is full"),
        (
            "\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found",
            ServiceUnavailable,
            "org.apache.kafka#kafka_2.13;9.9.9: not found",
        ),
        (
            "\t[FAILED     ] org.lz4#lz4;1.8.0!lz4.jar: invalid sha1: expected=a computed=b",
            ServiceUnavailable,
            "invalid sha1",
        ),
        ("something else", ServiceUnavailable, "Ivy failed"),
    ],
)
def test_what_ivy_says_becomes_one_line_with_the_fix(
    tmp_path: Path, output: str, kind: type[Exception], message: str
) -> None:
    failure = ivy.explain(f":: resolving\n{output}\n", tmp_path / "ivy.log")

    assert type(failure) is kind
    assert message in str(failure)
    assert "\n" not in str(failure)


def test_a_child_holds_the_lock_when_its_parent_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    code = f"""if True:
        import subprocess, sys, os
        from pathlib import Path
        from sandbox.processes.locks import locked
        with locked(Path({str(file)!r}), "x") as lock:
            sleep = "import time; print('up', flush=True); time.sleep(60)"
            child = subprocess.Popen([sys.executable, "-c", sleep], pass_fds=(lock,))
            print(child.pid, flush=True)
            child.wait()"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        words = [parent.stdout.readline().strip(), parent.stdout.readline().strip()]
        child = int(next(word for word in words if word.isdigit()))
        parent.kill()
        parent.wait()

        was_locked = not _can_lock(file)
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not _can_lock(file) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert was_locked
    assert _can_lock(file)


def _can_lock(file: Path) -> bool:
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
