"""The rooms of the packages: imports run one way, folders stay small, documents name what is."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from tests.python.programs import ran

PACKAGES = ("bench", "dashboard", "sandbox", "spark_ingest")
MOST_MODULES = 16
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
]


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    return ran(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"], cwd=project
    )


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, to plant imports in."""
    copy = tmp_path_factory.mktemp("layers")
    for package in PACKAGES:
        unread = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / package, copy / package, ignore=unread)
    shutil.copyfile(PROJECT / "pyproject.toml", copy / "pyproject.toml")
    return copy


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        (
            "spark_ingest/streaming/run.py",
            "from sandbox import ui",
            "spark_ingest.streaming.run -> sandbox.ui",
        ),
        (
            "spark_ingest/commits/branch.py",
            "from spark_ingest.records import decode",
            "spark_ingest.commits.branch -> spark_ingest.records.decode",
        ),
        (
            "spark_ingest/operate/recover.py",
            "from spark_ingest.quarantine import choice",
            "spark_ingest.operate.recover -> spark_ingest.quarantine.choice",
        ),
        (
            "sandbox/services/kafka.py",
            "from sandbox.tour import query",
            "sandbox.services.kafka -> sandbox.tour.query",
        ),
        ("sandbox/ui.py", "from bench.report import machine", "sandbox.ui -> bench.report.machine"),
        ("spark_ingest/nowhere.py", "", "spark_ingest.nowhere"),
    ],
)
def test_an_import_that_runs_up_fails_the_layer_check(
    copied: Path, file: str, line: str, said: str
) -> None:
    planted = copied / file
    before = planted.read_text() if planted.exists() else None
    # Also where only a function imports it.
    planted.write_text(f"{before or ''}\n\ndef late():\n    {line or 'pass'}\n")
    try:
        done = lint_imports(copied)
    finally:
        if before is None:
            planted.unlink()
        else:
            planted.write_text(before)

    assert done.returncode == 1, done.stdout
    assert said in " ".join(done.stdout.split()), done.stdout


def test_the_layers_hold_as_they_are() -> None:
    done = lint_imports(PROJECT)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_more_modules_than_a_person_takes_in(package: str) -> None:
    folders = {path.parent for path in (PROJECT / package).rglob("*.py")}
    sizes = {str(folder.relative_to(PROJECT)): len(list(folder.glob("*.py"))) for folder in folders}

    assert {name: n for name, n in sizes.items() if n > MOST_MODULES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_folder_says_what_it_is_for(package: str) -> None:
    root = PROJECT / package
    folders = {file.parent for file in root.rglob("*.py")} - {root}
    silent = [
        folder
        for folder in folders
        if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    ]

    assert silent == []


def test_documents_name_no_file_of_a_package_that_is_not_there() -> None:
    named = re.compile(r"(?<![\w./])((?:spark_ingest|sandbox|bench)/[\w/]+(?:\.\w+)?)")
    dotted = re.compile(r"\b((?:spark_ingest|sandbox|bench)(?:\.[a-z_]+)+)\b")
    # The name of a file that the block below it shows the reader to write.
    to_write = re.compile(r"^`[^`\n]+`:$", re.MULTILINE)
    missing = []
    for document in DOCUMENTS:
        text = to_write.sub("", document.read_text())
        paths = [*named.findall(text), *(name.replace(".", "/") for name in dotted.findall(text))]
        missing += [
            (document.name, path)
            for path in paths
            if not (PROJECT / path).exists() and not (PROJECT / f"{path}.py").exists()
        ]
    assert missing == []
