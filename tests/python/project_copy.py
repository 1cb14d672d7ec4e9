"""Copies of the project, for tests that change it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sandbox.settings import PROJECT


def copy_project(into: Path) -> Path:
    """A copy of the dbt project, to change."""
    for folder in ("analyses", "macros", "models", "profiles", "seeds", "tests/dbt"):
        shutil.copytree(PROJECT / folder, into / folder)
    for name in ("dbt_project.yml", "packages.yml", "dbt-bouncer.yml", ".sqlfluff"):
        shutil.copyfile(PROJECT / name, into / name)
    return into


def copy_checkout(into: Path) -> Path:
    """A copy of every file that is in the repository, or would be with the next `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (PROJECT / name).exists():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, into / name, follow_symlinks=False)
    return into
