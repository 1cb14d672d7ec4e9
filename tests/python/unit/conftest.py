"""What dbt knows of the project, without a Spark."""

from __future__ import annotations

import pytest

from docs.generate.domain_pages import Manifest, parse_manifest


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """dbt's manifest of this checkout."""
    return parse_manifest(tmp_path_factory.mktemp("manifest"))
