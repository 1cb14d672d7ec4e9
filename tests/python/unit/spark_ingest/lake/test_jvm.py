"""Java's classes are shipped once, and its iterators read without an exception at their end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from spark_ingest.lake import jvm as jvms
from spark_ingest.records.java_checks import SOURCES

STREAMS = 4
CLASSES = ("AvroNode", "AvroWalk", "AvroCheck")


def test_streams_that_ask_at_the_same_time_ship_each_jar_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped: list[Path] = []
    together = threading.Barrier(STREAMS)

    class FakeJvm:
        def __init__(self, _spark: object) -> None:
            self.packages = MagicMock()
            java = self.packages.org.codehaus.janino.SimpleCompiler.return_value
            java.getBytecodes.return_value = {"millrace.AvroCheck": b"class"}
            utils = self.packages.org.apache.spark.util.Utils
            utils.createTempDir.return_value = tmp_path

        def add_jar(self, jar: Path) -> None:
            shipped.append(jar)

    monkeypatch.setattr(jvms, "Jvm", FakeJvm)
    monkeypatch.setattr(jvms, "_loaders", {})
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app"))

    def ask(_stream: int) -> object:
        together.wait(10)
        return jvms._loader(spark, tuple(SOURCES / f"{name}.java" for name in CLASSES))

    with ThreadPoolExecutor(STREAMS) as streams:
        loaders = list(streams.map(ask, range(STREAMS)))

    assert [jar.name for jar in shipped] == [f"millrace.{name}.jar" for name in CLASSES]
    assert len(set(map(id, loaders))) == 1


def test_a_java_iterator_is_read_without_asking_for_more_than_it_has() -> None:
    """Fails when the end is found by Java's exception, which costs a batch a sixth of its time."""
    left = [1, 2]
    iterator = SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))

    assert jvms.drained(iterator) == [1, 2]
