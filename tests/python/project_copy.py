"""A copy of the dbt project, for tests that change it."""

from __future__ import annotations

import shutil
from pathlib import Path

from sandbox.settings import PROJECT


def copy_project(into: Path) -> Path:
    """A copy of the dbt project, to change."""
    for folder in ("analyses", "macros", "models", "profiles", "seeds", "tests/dbt"):
        shutil.copytree(PROJECT / folder, into / folder)
    for name in ("dbt_project.yml", "packages.yml", "dbt-bouncer.yml", ".sqlfluff"):
        shutil.copyfile(PROJECT / name, into / name)
    return into
