"""Avro schemas, and values as a producer frames them."""

from __future__ import annotations

import io
from typing import Any

import fastavro

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.framing import header
from spark_ingest.avro.schema import WriterSchema


def record(*fields: tuple[str, Any], name: str = "R", namespace: str = "n") -> dict[str, Any]:
    """A record with fields that have no defaults."""
    described = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "namespace": namespace, "fields": described}


def combined(*schemas: Any) -> TopicSchema:
    """What a topic's columns are, of the schemas of its writers 1, 2, …"""
    return combine([WriterSchema(i, schema) for i, schema in enumerate(schemas, 1)])


def framed(schema_id: int, schema: Any, value: Any) -> bytes:
    """A value as a producer frames it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return header(schema_id) + out.getvalue()
