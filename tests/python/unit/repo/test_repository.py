"""Facts about the repository itself, which no other check would miss until too late."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sandbox.cli
import spark_ingest.cli
from sandbox.settings import PROJECT
from tests.python.programs import ran
from tests.python.project_copy import tracked

ROOT = PROJECT
TARGETS = {
    "install", "demo", "live", "test", "test-fast", "render", "parity", "lint",
    "format", "docs", "clean",
}  # fmt: skip
INSTALLERS = ("parts.py", "class_archive.py", "spark_conf.py")
# Written with classes so that these patterns do not find themselves.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:wor[k]|roo[t]|hom[e]|User[s])/\w")
SILENCED = re.compile(r"#\s*(?:noq[a]|type:\s*ignor[e])|\b(?:TOD[O]|FIXM[E])\b")


def texts(*suffixes: str) -> dict[str, str]:
    """Text by path for the repository's files with these suffixes, or for all."""
    found = {}
    for path in tracked():
        if path.is_file() and (not suffixes or path.suffix in suffixes):
            found[str(path.relative_to(ROOT))] = path.read_text(errors="replace")
    return found


def pins() -> dict[str, str]:
    """The text of each package's entry in the lock, by canonical name."""
    entries: dict[str, str] = {}
    name = ""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)(?:\[.*?\])?==", line):
            name = canonicalize_name(match[1])
        entries[name] = entries.get(name, "") + line + "\n"
    return entries


def pinned(name: str) -> str:
    match = re.search(r"==(\S+)", pins()[name])
    assert match, name
    return match[1]


def make(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make with this repository's Makefile in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (folder / name).write_text((ROOT / name).read_text())
    # A make above this one (`make test`) must not hand its flags down.
    inherited = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS"}}
    return ran(["make", *words], cwd=folder, env=inherited | environment)


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def imports_of(package: str) -> list[tuple[str, str]]:
    """Every absolute import of a package's files: the file and the module's full name."""
    found = []
    for path, text in texts(".py").items():
        if not path.startswith(f"{package}/"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and not node.level:
                found.append((path, node.module or ""))
            elif isinstance(node, ast.Import):
                found += [(path, alias.name) for alias in node.names]
    return found


def test_plain_make_lists_every_documented_target(tmp_path: Path) -> None:
    listed = make(tmp_path / "a b").stdout
    shown = set(re.findall(r"^  ([a-z-]+) +\S", listed, re.MULTILINE))
    assert shown >= TARGETS
    commented = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert shown == set(commented)


def test_every_make_target_that_a_document_names_exists() -> None:
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (path, target)
        for path, text in texts(".md").items()
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    }
    assert {target for _, target in named} & TARGETS
    assert [(path, target) for path, target in named if target not in rules] == []


def test_make_refuses_an_old_python_in_one_line(tmp_path: Path) -> None:
    old = program(tmp_path / "c d", "python3.10", "exit 1")
    done = make(tmp_path / "a b", "install", f"PYTHON={old}")
    assert done.returncode == 2
    assert "Python 3.11 or newer" in done.stderr.splitlines()[0]
    assert not (tmp_path / "a b" / ".venv" / ".packages").exists()


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "25"])
def test_make_refuses_a_jdk_that_spark_cannot_use(tmp_path: Path, version: str) -> None:
    program(tmp_path / "jdk x/bin", "java", f"echo 'openjdk version \"{version}\"' >&2")
    done = make(tmp_path / "a b", "demo", "PYTHON=false", JAVA_HOME=str(tmp_path / "jdk x"))
    assert done.returncode == 2
    assert "JDK 17 or 21" in done.stderr.splitlines()[0]


def test_make_refuses_a_missing_jdk(tmp_path: Path) -> None:
    done = make(tmp_path / "a b", "test", "PYTHON=false", JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert "found none" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2"])
def test_make_takes_the_jdks_that_spark_supports(tmp_path: Path, version: str) -> None:
    program(tmp_path / "jdk x/bin", "java", f"echo 'openjdk version \"{version}\"' >&2")
    done = make(tmp_path / "a b", "java", JAVA_HOME=str(tmp_path / "jdk x"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "installs", "fetches"),
    [
        ("demo", "demo", True),
        ("live", "demo", True),
        ("docs", "demo", False),
        ("test", "all", True),
        ("parity", "all", True),
        ("test-fast", "all", False),
        ("lint", "all", False),
        ("install", "all", False),
    ],
)
def test_make_installs_what_a_target_runs(
    tmp_path: Path, target: str, installs: str, fetches: bool
) -> None:
    shown = make(tmp_path / "a b", "-n", target).stdout
    (command,) = [line for line in shown.splitlines() if "environment.py" in line]
    assert f"environment.py {installs}" in command
    assert ("--parts" in command) is fetches


def test_what_the_demo_installed_is_no_reason_to_leave_out_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    for name in ("ivy.xml", "ivysettings.xml", *INSTALLERS):
        program(folder / "sandbox/install", name, "")
    place = program(folder / ".venv", ".place", "")
    place.write_text(f"{folder.resolve()}\n")
    for stamp in (".demo-packages", ".demo-installed"):
        program(folder / ".venv", stamp, "")
        # The Makefile and the lock are copied anew by each make.
        os.utime(folder / ".venv" / stamp, (2e9, 2e9))

    assert "environment.py" not in make(folder, "-n", "demo").stdout
    assert "environment.py all" in make(folder, "-n", "test").stdout

    place.write_text("/elsewhere\n")
    moved = make(folder, "-n", "demo").stdout
    assert "rm -rf .venv" in moved
    assert "environment.py demo" in moved


def test_lock_holds_every_dependency_of_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    missing = [
        line
        for requirement in map(Requirement, wanted)
        if (line := str(requirement))
        and (
            canonicalize_name(requirement.name) not in pins()
            or not requirement.specifier.contains(
                pinned(canonicalize_name(requirement.name)), prereleases=True
            )
        )
    ]
    assert missing == []


def test_lock_has_a_hash_for_every_pin() -> None:
    assert len(pins()) > 100
    without = [n for n, text in pins().items() if "--hash=sha256:" not in text]
    assert without == []


@pytest.mark.parametrize(
    "lock", [*ROOT.glob("*.lock"), *ROOT.glob("deploy/**/*.lock"), *ROOT.glob("tests/**/*.lock")]
)
def test_a_lock_names_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert "--hash=sha256:" in text
    assert re.findall(r"(?m)^.*(?:://|--index-url|--find-links|^file:| @ ).*$", text) == []


def test_spark_parts_are_of_the_pinned_spark() -> None:
    revisions = {
        part.get("name"): part.get("rev")
        for part in ET.parse(ROOT / "sandbox/install/ivy.xml").iter("dependency")
        # Those of an older Spark are for other clusters.
        if part.get("org") == "org.apache.spark" and part.get("conf") == "spark->default"
    }
    assert revisions
    assert set(revisions.values()) == {pinned("pyspark")}
    minor = pinned("pyspark").rsplit(".", 1)[0]
    assert f"iceberg-spark-runtime-{minor}_" in (ROOT / "sandbox/install/ivy.xml").read_text()


def test_sqlfluff_and_its_templater_have_one_version() -> None:
    assert pinned("sqlfluff") == pinned("sqlfluff-templater-dbt")


def test_dbt_needs_no_hub_package() -> None:
    assert yaml.safe_load((ROOT / "packages.yml").read_text()) == {"packages": []}
    assert not (ROOT / "dependencies.yml").exists()


def test_root_profile_is_a_relative_link() -> None:
    link = ROOT / "profiles.yml"
    assert link.is_symlink()
    assert link.readlink() == Path("profiles/profiles.yml")
    assert link.exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /wor" + "k/main/x", True),
        ("'/hom" + "e/ann/.m2'", True),
        ("file:///User" + "s/ann", True),
        ("models/work/orders", False),
        ("${HOME}/home/x", False),
        ("user.home/tmp", False),
    ],
)
def test_machine_paths_are_recognised(text: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is found


def test_no_file_names_a_path_of_some_machine() -> None:
    assert [path for path, text in texts().items() if MACHINE_PATH.search(text)] == []


def test_no_check_is_silenced_and_nothing_is_left_to_do() -> None:
    silenced = [
        f"{path}:{number}"
        for path, text in texts(".py", ".sql", ".yml", ".toml", ".sh").items()
        for number, line in enumerate(text.splitlines(), start=1)
        if SILENCED.search(line)
    ]
    assert silenced == []


@pytest.mark.parametrize(
    ("package", "extras"),
    [
        ("spark_ingest", {"spark", "reconcile"}),
        ("sandbox", {"sandbox", "dbt"}),
        ("dashboard", {"dashboard"}),
    ],
)
def test_packages_declare_what_they_import(package: str, extras: set[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    declared = {canonicalize_name(Requirement(line).name) for line in wanted}
    # PySpark pins its py4j itself.
    declared.add(canonicalize_name("py4j"))
    providers = packages_distributions()
    undeclared = set()
    for path, name in imports_of(package):
        top = name.split(".")[0]
        known = top in sys.stdlib_module_names or top in {package, "spark_ingest"}
        # What is not installed here is called as it is imported.
        names = {canonicalize_name(dist) for dist in providers.get(top, [top])}
        if not known and not names & declared:
            undeclared.add((path, top))
    assert undeclared == set()


def test_package_data_are_patterns_of_files_that_a_package_holds() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]

    nothing = [
        f"{package}: {pattern}"
        for package, patterns in setuptools["package-data"].items()
        for pattern in patterns
        if not list((ROOT / package).glob(pattern))
    ]

    assert nothing == []


def test_python_files_stay_small() -> None:
    long = {p: n for p, t in texts(".py").items() if (n := t.count("\n")) > 500}
    assert long == {}


@pytest.mark.parametrize("app", [sandbox.cli.app, spark_ingest.cli.app])
def test_help_fits_a_terminal_of_80_columns(app: typer.Typer) -> None:
    def commands(command: Any) -> Iterator[Any]:
        yield command
        for child in getattr(command, "commands", {}).values():
            yield from commands(child)

    # The first paragraph is wrapped by Typer, the others stand as they are written.
    wide = {
        command.name: line
        for command in commands(typer.main.get_command(app))
        for line in cleandoc(command.help or "").partition("\n\n")[2].splitlines()
        if len(re.sub(r"\[/?bold\]", "", line)) > 78
    }
    assert wide == {}


def test_links_of_the_documents_lead_somewhere() -> None:
    documents = texts(".md")
    assert "README.md" in documents
    dead = [
        (path, link)
        for path, text in documents.items()
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
        if not (ROOT / path).parent.joinpath(link).exists()
    ]
    assert dead == []


def test_the_first_round_builds_all_models_for_no_selection_has_all_its_parents() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (round_,) = re.findall(r"While you work:\n\n```\n(.*?)```", text, re.DOTALL)

    builds = [line for line in round_.splitlines() if line.startswith("dbt ")]

    assert [line.partition("#")[0].strip() for line in builds] == ["dbt build"]


def test_ci_runs_what_the_readme_shows_people_to_run() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    commands = re.findall(r"^step (make \S+)$", script.read_text(), re.MULTILINE)
    assert commands == ["make lint", "make test", "make parity"]
    assert "make test" in (ROOT / "README.md").read_text()


def test_hooks_are_local_and_use_the_pinned_tools() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {repository["repo"] for repository in hooks["repos"]} == {"local"}
    languages = {hook["language"] for repo in hooks["repos"] for hook in repo["hooks"]}
    assert languages == {"system"}


def test_no_time_ends_a_query_of_redshift() -> None:
    # The driver holds each answer against the time that it has to connect.
    outputs = yaml.safe_load((ROOT / "profiles/profiles.yml").read_text())
    targets = outputs["millrace"]["outputs"].items()
    redshift = {name: of for name, of in targets if of["type"] == "redshift"}

    assert set(redshift) == {"redshift", "prod", "redshift-standin"}
    assert not [name for name, of in redshift.items() if "connect_timeout" in of]
