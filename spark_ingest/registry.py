"""Schemas by id, from a registry with the Confluent API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_ingest.config import Connections
from spark_ingest.errors import ServiceUnavailable

AvroSchema = Any
"""A parsed Avro schema: the JSON of it (dict, list or str)."""


# The registry's own words for an unknown subject, version and schema: any other 404 is a
# wrong address or a proxy, and says nothing of schemas.
_NOT_THERE = (40401, 40402, 40403)


@dataclass(frozen=True)
class WriterSchema:
    """A registered schema.

    Attributes:
        id: What a record's framing carries.
        schema: Its Avro schema as parsed JSON; None when it is not Avro, or leans on
            other registered schemas.
    """

    id: int
    schema: AvroSchema | None


class SchemaRegistry:
    """Reads subjects and schemas; keeps what it has read, since a schema id never changes."""

    def __init__(self, connections: Connections) -> None:
        self.url = connections.registry.url
        self._client = SchemaRegistryClient(
            {"url": self.url, "max.retries": 1, "timeout": 10}
        )
        self._versions: dict[tuple[str, int], WriterSchema] = {}

    def subject_schemas(self, subject: str) -> list[WriterSchema]:
        """Every version of a subject, oldest first; empty when it does not exist.

        Raises:
            ServiceUnavailable: The registry does not answer.
        """
        try:
            return [
                self._version(subject, n) for n in self._client.get_versions(subject)
            ]
        except SchemaRegistryError as error:
            if error.error_code in _NOT_THERE:
                return []
            raise self._unavailable(error) from error
        # The client lets the errors of whichever HTTP library it found pass through.
        except Exception as error:
            raise self._unavailable(error) from error

    def schema(self, schema_id: int) -> WriterSchema | None:
        """The schema with this id, or None when the registry does not know it.

        Raises:
            ServiceUnavailable: The registry does not answer.
        """
        try:
            return _writer_schema(schema_id, self._client.get_schema(schema_id))
        except SchemaRegistryError as error:
            if error.error_code in _NOT_THERE:
                return None
            raise self._unavailable(error) from error
        # The client lets the errors of whichever HTTP library it found pass through.
        except Exception as error:
            raise self._unavailable(error) from error

    def _version(self, subject: str, number: int) -> WriterSchema:
        key = (subject, number)
        if key not in self._versions:
            registered = self._client.get_version(subject, number)
            if registered.schema_id is None or registered.schema is None:
                raise ServiceUnavailable(
                    f"{self.url} answered without a schema for {subject}"
                )
            self._versions[key] = _writer_schema(
                registered.schema_id, registered.schema
            )
        return self._versions[key]

    def _unavailable(self, error: Exception) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"the schema registry at {self.url} does not answer "
            f"({type(error).__name__}: {' '.join(str(error).split())}): "
            "start it (`sandbox up registry`) or mend registry.url in profiles/ingest.yml"
        )


def _writer_schema(schema_id: int, registered: Any) -> WriterSchema:
    usable = registered.schema_type in (None, "AVRO") and not registered.references
    return WriterSchema(
        schema_id, json.loads(registered.schema_str) if usable else None
    )
