"""What is installed of the lock for whom, and what happens when a part of it fails."""

from __future__ import annotations

import os
import sys
import time
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sandbox.install import environment
from sandbox.install.environment import Pin, canonical, pins
from sandbox.settings import PROJECT
from tests.python.programs import assert_gone, ran

SMALL = """\
rich==15.0.0 \\
    --hash=sha256:aa
    # via
    #   millrace (pyproject.toml)
    #   typer
Pygments==2.21.0 \\
    --hash=sha256:bb
    # via rich
ruff==0.17.6 \\
    --hash=sha256:cc
    # via millrace (pyproject.toml)
numpy==2.4.6 ; python_version < '3.14' \\
    --hash=sha256:dd
    # via pandas
numpy==2.5.0 ; python_version >= '3.14' \\
    --hash=sha256:ee
    # via pandas
"""
TABLE = """\
[project]
dependencies = ["rich>=13"]
[project.optional-dependencies]
dbt = []
dev = ["ruff>=0.11"]
"""


def lock() -> dict[str, Pin]:
    return pins((PROJECT / "requirements.lock").read_text())


def chosen(what: str) -> set[str]:
    return environment.chosen(lock(), (PROJECT / "pyproject.toml").read_text(), what)


def test_the_lock_says_what_needs_what() -> None:
    small = pins(SMALL)

    assert small["rich"].needed_by == {"millrace", "typer"}
    assert small["pygments"].needed_by == {"rich"}
    # One text for each kind of machine, and both are kept.
    assert small["numpy"].text.count("--hash") == 2
    assert environment.chosen(small, TABLE, "demo") == {"rich", "pygments"}
    assert environment.chosen(small, TABLE, "all") == {"rich", "pygments", "ruff"}
    assert environment.requirements(small, ["ruff"]) == (
        "ruff==0.17.6 \\\n    --hash=sha256:cc\n    # via millrace (pyproject.toml)\n"
    )


def test_demo_and_all_go_without_the_dashboard_and_the_demo_without_tools() -> None:
    demo, everything = chosen("demo"), chosen("all")

    assert everything | chosen("dashboard") == set(lock())
    assert "streamlit" not in everything
    assert {"streamlit", "altair"} <= chosen("dashboard")
    assert not {"pyspark", "dbt-core"} & chosen("dashboard")
    assert demo < set(lock())
    assert {"pyspark", "dbt-core", "dbt-spark", "confluent-kafka"} <= demo
    tools = {"mypy", "ruff", "pytest", "sqlfluff", "matplotlib", "moto", "playwright"}
    assert not tools & demo


def test_what_a_package_of_the_demo_needs_is_of_the_demo() -> None:
    demo = chosen("demo")
    needed = {
        canonical(need.name)
        for package in distributions()
        if canonical(package.metadata["Name"]) in demo
        for need in map(Requirement, package.requires or ())
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }

    assert needed - demo == set()


def test_what_fetches_the_parts_is_installed_before_it_starts() -> None:
    code = (
        "import sys, sandbox.install.spark_conf;"
        " print(*{name.partition('.')[0] for name in sys.modules})"
    )
    # In a process of its own: pytest has loaded more.
    command = [sys.executable, "-c", code]
    done = ran(command)
    providers = packages_distributions()
    loaded = {canonical(name) for top in done.stdout.split() for name in providers.get(top, [])}
    first = environment.with_needed(lock(), environment.FETCHER_AND_NEEDED)

    assert done.returncode == 0, done.stderr
    # What site loads is there in any environment, or not needed.
    without = {"millrace", "setuptools", "distutils-precedence"}
    assert loaded - without <= first | {*environment.FETCHER}


def python(folder: Path, script: str) -> str:
    """In place of the Python that fetches."""
    file = folder / "py thon"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_parts_are_there_behind_the_installation(tmp_path: Path) -> None:
    done = tmp_path / "done"

    with environment.fetching(python(tmp_path, f"sleep 0.2; touch '{done}'"), True):
        assert not done.exists()

    assert done.exists()


def test_a_fetch_that_fails_fails_the_command(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended, environment.fetching(python(tmp_path, "exit 3"), True):
        pass

    assert ended.value.code == 3


def test_a_fetch_ends_with_an_installation_that_fails(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ > '{pids}.new'; mv '{pids}.new' '{pids}'; wait"

    def fails() -> None:
        with environment.fetching(python(tmp_path, script), True):
            while not pids.exists():
                time.sleep(0.02)
            environment.run(["false"])

    with pytest.raises(SystemExit):
        fails()

    assert_gone(pids)


@pytest.mark.parametrize("has_uv", [False, True])
def test_stamps_are_set_when_all_is_installed_by_pip_or_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_uv: bool
) -> None:
    commands: list[list[str]] = []

    def runs(command: list[str]) -> None:
        (tmp_path / ".venv").mkdir(exist_ok=True)
        commands.append(command)

    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text((PROJECT / name).read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "run", runs)
    monkeypatch.setattr("shutil.which", lambda _name: "uv" if has_uv else None)
    monkeypatch.delenv("DIST_EXTRA_CONFIG", raising=False)

    environment.install("demo", with_parts=False)

    folder = tmp_path / ".venv"
    stamps = {file.name for file in folder.iterdir() if file.name.startswith(".")}
    assert stamps == {".demo-packages", ".place"}
    assert (folder / ".place").read_text().strip() == os.path.realpath(tmp_path)
    assert "\nruff==" not in (folder / "demo.lock").read_text()
    installs = [command for command in commands if "install" in command]
    assert all(("uv" in command[0]) is has_uv for command in installs)
    assert all("--no-deps" in command for command in installs)
    *locked, project = installs
    assert all("--require-hashes" in command for command in locked)
    assert project[-2:] == ["--editable", "."]
    os.environ.pop("DIST_EXTRA_CONFIG")

    environment.install("all", with_parts=False)

    assert (folder / ".packages").exists()
    assert "\nruff==" in (folder / "all.lock").read_text()
    os.environ.pop("DIST_EXTRA_CONFIG")
