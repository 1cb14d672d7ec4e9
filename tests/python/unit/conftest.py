"""What dbt knows of the project, without a Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generate.domain_pages import Manifest, parse_manifest
from sandbox.processes.locks import locked
from tests.python.conftest import WORKER


@pytest.fixture(scope="session")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which dbt has parsed this checkout, once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if WORKER is None else base.parent) / "parsed"
    with locked(folder.with_suffix(".lock"), "another worker parses the project"):
        if not (folder / "manifest.json").exists():
            parse_manifest(folder)
    return folder


@pytest.fixture(scope="session")
def manifest(parsed: Path) -> Manifest:
    """dbt's manifest of this checkout."""
    made: Manifest = json.loads((parsed / "manifest.json").read_text())
    return made
