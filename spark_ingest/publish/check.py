"""Plan a publication, and compare its topic with its mart at the published snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spark_ingest.avro.framing import header
from spark_ingest.connect.broker import Topic
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import PersonNeeded
from spark_ingest.publish.publications import Publication
from spark_ingest.publish.publisher import Changes, mart_state
from spark_ingest.publish.record_schemas import RecordSchemas, read_schemas
from spark_ingest.publish.row_changes import Mart
from spark_ingest.publish.topic_contents import read_rows
from spark_ingest.publish.transactions import Progress, read_progress
from spark_ingest.streaming.services import Services

_ATTEMPTS = 5
_UNKNOWN = (0, 0)


@dataclass(frozen=True)
class Verified:
    """The comparison of a topic with its mart at the published snapshot.

    Attributes:
        snapshot_id: The published snapshot.
        rows: Number of rows of the mart.
        missing: Number of keys that are not in the topic.
        different: Number of keys with different values.
        extra: Number of keys that are not in the mart.
    """

    snapshot_id: int
    rows: int
    missing: int
    different: int
    extra: int

    @property
    def holds(self) -> bool:
        """Whether topic and mart are equal."""
        return not (self.missing or self.different or self.extra)


def planned(services: Services, publication: Publication) -> Counter[str]:
    """The number of records to send, by ``op``; changes nothing.

    Raises:
        MillraceError: The publication cannot start.
    """
    of = mart_state(services.spark, publication)
    topic = services.broker.topic(publication.topic) or Topic(publication.topic, "", ())
    done = read_progress(services.broker, publication.topic)
    ids = _UNKNOWN
    if done is not None and _registered(services.registry, done) == of.schemas:
        ids = done.schema_ids
    changes = Changes(services, publication, topic, done, ids, of)
    return Counter(record.op for record in changes.records())


def verify(services: Services, publication: Publication) -> Verified | None:
    """Compare a topic with its mart at the published snapshot; None if it was never published.

    Reads the whole topic with ``read_committed``; twice if they differ, because Kafka acknowledges
    a transaction before its records are visible in all partitions.

    Raises:
        PersonNeeded: The snapshot has expired, the topic or mart was recreated, or the topic was
            written at each attempt.
        ServiceUnavailable: Kafka or the registry does not answer.
    """
    found = _compared(services, publication)
    if found is None or found.holds:
        return found
    return _compared(services, publication)


def _compared(services: Services, publication: Publication) -> Verified | None:
    broker = services.broker
    for _ in range(_ATTEMPTS):
        done = read_progress(broker, publication.topic)
        topic = broker.topic(publication.topic)
        if done is None or topic is None:
            return None
        published = read_rows(broker, topic, publication.meta.envelope)
        if done.is_whole and read_progress(broker, publication.topic) == done:
            break
    else:
        raise PersonNeeded(
            f"{publication.topic} is being written: run `spark-ingest publish verify` again when "
            "`spark-ingest publish` has caught up"
        )
    of = mart_state(services.spark, publication)
    schemas = _registered(services.registry, done)
    known = (done.topic_id, done.table_uuid) == (topic.id, of.uuid)
    if schemas is None or not known or done.snapshot_id not in of.snapshots:
        raise PersonNeeded(
            f"the published snapshot of {publication.mart} has expired, or {publication.topic} or "
            f"the mart was recreated: `spark-ingest publish {publication.name} --once` updates "
            "the topic"
        )
    of_key, of_row = map(header, done.schema_ids)
    rows = missing = different = 0
    for change in Mart(services.spark, publication.mart, schemas).rows(done.snapshot_id):
        rows += 1
        was = published.pop(of_key + change.key, None)
        if was is None:
            missing += 1
        elif was != of_row + change.row:
            different += 1
    return Verified(done.snapshot_id, rows, missing, different, len(published))


def _registered(registry: SchemaRegistry, done: Progress) -> RecordSchemas | None:
    """The registered schemas with which a topic was written."""
    key, value = (registry.schema(number) for number in done.schema_ids)
    if key is None or value is None or key.schema is None or value.schema is None:
        return None
    return read_schemas(key.schema, value.schema)
