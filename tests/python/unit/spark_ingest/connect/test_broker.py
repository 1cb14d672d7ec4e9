"""What Spark is reported to read and what its offset log says."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Uuid

from spark_ingest.connect.broker import Broker, Topic, range_options, reader_options
from spark_ingest.connect.profile import Connections, Registry
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.jvm import batch_ends
from spark_ingest.operate.verify import gaps_text

CONNECTIONS = Connections(
    name="x",
    kafka={"bootstrap.servers": "a:1", "security.protocol": "SSL"},
    registry=Registry(url="http://r"),
)


def test_reading_begins_at_the_tables_offsets_and_new_partitions_at_their_beginning() -> None:
    options = reader_options(CONNECTIONS, Topic("t", "id", (0, 1, 2)), {0: 7, 2: 0}, 10)
    assert json.loads(options["startingOffsets"]) == {"t": {"0": 7, "1": -2, "2": 0}}
    assert options["kafka.security.protocol"] == "SSL"
    assert options["failOnDataLoss"] == "true"
    assert options["kafka.isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("partitions", "most"), [(1, 8 * 2**20), (8, 8 * 2**20), (32, 2 * 2**20), (5000, 2**18)]
)
def test_what_all_partitions_fetch_at_once_is_bounded(partitions: int, most: int) -> None:
    topic = Topic("t", "id", tuple(range(partitions)))
    ends = dict.fromkeys(topic.partitions, 5)

    for options in (
        reader_options(CONNECTIONS, topic, {}, 10),
        range_options(CONNECTIONS, "t", {}, ends),
    ):
        assert options["kafka.max.partition.fetch.bytes"] == str(most)


def test_a_batchs_ends_come_from_sparks_offset_log(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    log = 'v1\n{"batchWatermarkMs":0}\n{"t":{"1":3,"0":12}}\n'
    (tmp_path / "offsets" / "4").write_text(log)
    assert batch_ends(tmp_path, 4, "t") == {0: 12, 1: 3}


def test_a_topic_that_kafka_gives_no_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Connections(
        name="x", kafka={"bootstrap.servers": "a:1"}, registry=Registry(url="http://r")
    )
    broker = Broker(plain)
    described: Future[SimpleNamespace] = Future()
    described.set_result(
        SimpleNamespace(authorized_operations=None, partitions=[], topic_id=Uuid(0, 0))
    )
    admin = SimpleNamespace(describe_topics=lambda *_, **__: {"t": described}, poll=lambda _: 0)
    monkeypatch.setattr(broker, "_admin", admin)
    with pytest.raises(ConfigurationError, match="has no id for topic t"):
        broker.topic("t")


def test_gaps_are_reported_as_ranges() -> None:
    assert gaps_text([(5, 10), (12, 13)]) == "5-9, 12"
    assert gaps_text([(i, i + 1) for i in range(0, 60, 2)]).endswith("and 10 more ranges")
