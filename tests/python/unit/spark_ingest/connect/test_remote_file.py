"""A file that is named by a URI is read from where it lies, here from moto's S3."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest
from moto.server import ThreadedMotoServer

from spark_ingest.connect.remote_file import local_file
from spark_ingest.errors import ConfigurationError


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    assert local_file(str(tmp_path / "none.json")) == tmp_path / "none.json"


def test_an_object_is_copied_and_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        for name in [each for each in os.environ if each.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "none")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        httpx2.put(f"{address}/jobs").raise_for_status()
        headers = {"Content-Type": "application/json"}
        httpx2.put(f"{address}/jobs/a/manifest.json", content=b"{}", headers=headers)

        copy = local_file("s3://jobs/a/manifest.json")

        assert (copy.name, copy.read_text()) == ("manifest.json", "{}")
        with pytest.raises(ConfigurationError, match=r"s3://jobs/b\.json cannot be read"):
            local_file("s3://jobs/b.json")
    finally:
        server.stop()


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"ftp://host/manifest\.json cannot be read"):
        local_file("ftp://host/manifest.json")
