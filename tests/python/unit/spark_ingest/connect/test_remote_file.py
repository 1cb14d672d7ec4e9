"""A file that is named by a URI is read from where it lies, here from moto's S3."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from spark_ingest.connect.remote_file import local_file
from spark_ingest.errors import ConfigurationError


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    assert local_file(str(tmp_path / "none.json")) == tmp_path / "none.json"


def test_an_object_is_copied_and_a_missing_one_is_named(aws: str) -> None:
    httpx2.put(f"{aws}/jobs").raise_for_status()
    headers = {"Content-Type": "application/json"}
    httpx2.put(f"{aws}/jobs/a/manifest.json", content=b"{}", headers=headers).raise_for_status()

    copy = local_file("s3://jobs/a/manifest.json")

    assert (copy.name, copy.read_text()) == ("manifest.json", "{}")
    with pytest.raises(ConfigurationError, match=r"s3://jobs/b\.json cannot be read"):
        local_file("s3://jobs/b.json")


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"ftp://host/manifest\.json cannot be read"):
        local_file("ftp://host/manifest.json")
