"""Publishing to a secure sandbox, by the user who may.

Fails when the publisher is refused, or the ingest may write topics or schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.services.security import INGEST, PUBLISHER
from sandbox.settings import PROJECT
from sandbox.streams import published_topics
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import load_connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError
from spark_ingest.publish.transactions import PROGRESS_TOPIC, Progress, TopicWriter, read_progress
from tests.python.conftest import Stack, own_stack
from tests.python.stack.conftest import wait_for


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Stack]:
    """A secure broker and registry."""
    with own_stack(tmp_path / "sandbox", secure=True) as found:
        yield found


def test_the_publisher_may_publish_and_the_ingest_may_not(secure: Stack) -> None:
    profile = PROJECT / "profiles" / "ingest.yml"
    of = {
        user: load_connections(profile, None, {**secure.env, "INGEST_USER": user})
        for user in (INGEST, PUBLISHER)
    }
    topic, schema = published_topics()[0], {"type": "string"}
    ids = (0, SchemaRegistry(of[PUBLISHER]).register(f"{topic}-value", schema))
    theirs = Broker(of[PUBLISHER])
    for name in (PROGRESS_TOPIC, topic):
        theirs.create_topic(name, 1, {})
    done = Progress("out", "id", "uuid", 1, ids, is_whole=True)
    writer = TopicWriter(of[PUBLISHER], topic)
    writer.fence_others()
    writer.send(b"key", b"value")
    writer.commit(done)

    # A commit is answered before all partitions have its marker.
    wait_for(lambda: read_progress(theirs, topic) == done)
    with pytest.raises(ConfigurationError) as refused:
        TopicWriter(of[INGEST], topic).fence_others()
    said = str(refused.value)
    assert f"on transactional id millrace.publish.{topic}" in said
    assert said.endswith("add ACLs that allow WRITE, DESCRIBE")
    with pytest.raises(ConfigurationError, match="user ingest may not read or register"):
        SchemaRegistry(of[INGEST]).register(f"{topic}-value", {"type": "long"})
