"""The sandbox's streams take their topics from the dbt sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import streams
from sandbox.streams import STREAMS, Stream
from spark_ingest.errors import ConfigurationError

SOURCES = """
sources:
  - name: shop
    tables:
      - name: orders
        config: {meta: {ingest: {topic: their.orders}}}
      - name: seeds
"""


def test_every_stream_has_a_topic_of_its_own_and_a_key_that_its_values_hold() -> None:
    assert len({stream.topic for stream in STREAMS.values()}) == len(STREAMS) > 0
    for stream in STREAMS.values():
        fields = {field["name"] for field in stream.value_schema["fields"]}
        assert stream.key_field in fields


def test_a_topic_is_what_the_source_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models/staging/shop/_shop__sources.yml"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCES)
    monkeypatch.setattr(streams, "PROJECT", tmp_path)
    monkeypatch.setattr(streams, "_topics", streams._topics.__wrapped__)
    orders, seeds = (
        Stream(name, {}, {}, "order_id") for name in ("shop.orders", "shop.seeds")
    )

    assert orders.topic == "their.orders"
    assert orders.key_subject == "their.orders-key"
    with pytest.raises(
        ConfigurationError, match=r"table seeds of source shop.*_shop__sources\.yml"
    ):
        assert seeds.topic
