"""A publisher that another one fenced, wherever its producer says so first.

Fails when a fenced publisher's error is not one line, or comes out of ending it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock, patch

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark_ingest.connect.profile import Connections, Registry
from spark_ingest.errors import PersonNeeded
from spark_ingest.publish import transactions
from spark_ingest.publish.transactions import TopicWriter

CONNECTIONS = Connections(
    name="x", kafka={"bootstrap.servers": "b:1"}, registry=Registry(url="http://r")
)
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


@pytest.fixture
def producer() -> Iterator[Mock]:
    with patch.object(transactions, "Producer") as made:
        yield made.return_value


@pytest.mark.parametrize("step", ["produce", "poll"])
def test_a_fenced_publisher_says_so_in_a_line_and_ends(producer: Mock, step: str) -> None:
    getattr(producer, step).side_effect = FENCED
    # librdkafka's fatal error is an exception of whichever call hears of it.
    producer.abort_transaction.side_effect = FENCED
    producer.flush.side_effect = FENCED
    writer = TopicWriter(CONNECTIONS, "demo.sales")

    with pytest.raises(PersonNeeded, match=r"demo\.sales: another"):
        writer.send(b"key", b"row")
    writer.abort()

    producer.purge.assert_called_once_with()
