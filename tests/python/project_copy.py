"""The project's files, and copies of them for tests that change it."""

from __future__ import annotations

import shutil
from pathlib import Path

from sandbox.settings import PROJECT
from tests.python.programs import ran


def copy_project(into: Path) -> Path:
    """A copy of the dbt project, to change."""
    for folder in ("analyses", "macros", "models", "profiles", "seeds", "tests/dbt"):
        shutil.copytree(PROJECT / folder, into / folder)
    for name in ("dbt_project.yml", "packages.yml", "dbt-bouncer.yml", ".sqlfluff"):
        shutil.copyfile(PROJECT / name, into / name)
    return into


def tracked() -> list[Path]:
    """Files that are in the repository, or would be with the next `git add`."""
    listed = ran(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True
    ).stdout
    files = [PROJECT / name for name in listed.split("\0") if name]
    return [file for file in files if file.exists()]


def copy_checkout(into: Path) -> Path:
    """A copy of every tracked file."""
    for file in tracked():
        copied = into / file.relative_to(PROJECT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copied, follow_symlinks=False)
    return into
