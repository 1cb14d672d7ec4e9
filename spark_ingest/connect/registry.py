"""Client of a schema registry: with the Confluent API, with Apicurio's native ids, or AWS Glue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_ingest.avro.framing import Ids
from spark_ingest.avro.schema import AvroSchema, WriterSchema
from spark_ingest.connect.apicurio import Apicurio
from spark_ingest.connect.diagnose import Endpoint, web_refusal
from spark_ingest.connect.glue import Glue
from spark_ingest.connect.profile import Connections
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

# Error codes for an unknown subject, version and schema: any other 404 is from a wrong URL or
# a proxy.
_NOT_THERE = (40401, 40402, 40403)
_INCOMPATIBLE = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
# Schema ids are signed 32-bit integers in the Confluent API.
LARGEST_ID = 2**31 - 1


class SchemaRegistry:
    """Reads and registers schemas, with a cache, because the schema of an id never changes."""

    def __init__(self, connections: Connections) -> None:
        self.url = connections.registry.url
        self._connection = connections.registry
        self._target = connections.name
        settings: dict[str, str | int] = {
            "url": self.url,
            "max.retries": 1,
            "timeout": 10,
            **self._connection.tls,
        }
        if self._connection.username is not None:
            login = f"{self._connection.username}:{self._connection.password}"
            settings["basic.auth.user.info"] = login
        self._settings = settings
        self._confluent: SchemaRegistryClient | None = None
        self._own: Apicurio | None = None
        self._glue: Glue | None = None
        self._versions: dict[tuple[str, int], WriterSchema] = {}
        self._by_own_id: dict[tuple[str, int], WriterSchema] = {}

    def subjects(self) -> list[str]:
        """The names of all subjects.

        Raises:
            ConfigurationError: The registry denies access.
            ServiceUnavailable: It is unavailable.
        """
        with self._asked():
            return list(self._client.get_subjects())

    def subject_schemas(self, subject: str, ids: Ids = "registry") -> list[WriterSchema]:
        """Every version of a subject, oldest first; empty if it does not exist.

        ``ids`` is the kind of ids; with Apicurio's, ``subject`` is an artifact of the group
        ``default``, and with Glue's the name of a schema.

        Raises:
            ConfigurationError: The registry denies access.
            ServiceUnavailable: It is unavailable.
        """
        with self._asked():
            try:
                if ids == "glue":
                    return self._of_glue().versions(subject)
                if ids != "registry":
                    return self._own_versions(subject, ids)
                numbers = self._client.get_versions(subject)
                return [self._version(subject, number) for number in numbers]
            except SchemaRegistryError as error:
                if error.error_code in _NOT_THERE:
                    return []
                raise

    def schema(self, schema_id: int, ids: Ids = "registry") -> WriterSchema | None:
        """The schema with this id; None if it does not exist. ``ids`` is the kind of id.

        Raises:
            ConfigurationError: The registry denies access.
            ServiceUnavailable: It is unavailable.
        """
        with self._asked():
            try:
                if ids == "glue":
                    return self._of_glue().schema(schema_id)
                if ids != "registry":
                    return self._of_own_id(ids, schema_id)
                found = self._client.get_schema(schema_id)
                return self._writer_schema(schema_id, found)
            except SchemaRegistryError as error:
                if error.error_code in _NOT_THERE:
                    return None
                raise

    def register(self, subject: str, schema: AvroSchema) -> int:
        """Register a schema as the subject's next version if it is new; returns its id.

        A new subject gets the compatibility level ``BACKWARD``: consumers with the newest version
        can read older records. For others the registry's configured level applies.

        Raises:
            ConfigurationError: The registry denies it, or the schema is incompatible with the
                previous versions.
            ServiceUnavailable: It is unavailable.
        """
        is_new = not self.subject_schemas(subject)
        with self._asked():
            try:
                number = self._client.register_schema(subject, Schema(json.dumps(schema), "AVRO"))
                if is_new:
                    self._client.set_compatibility(subject, "BACKWARD")
            except SchemaRegistryError as error:
                if error.http_status_code not in _INCOMPATIBLE:
                    raise
                raise ConfigurationError(
                    f"subject {subject} rejects the new schema: consumers with it could not read "
                    "older records. A new column must be nullable, and a type cannot change; or "
                    "publish to another topic "
                    f"({' '.join(error.error_message.split())[:300]})"
                ) from error
        return number

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except MillraceError:
            raise
        # The client also raises errors of its HTTP library.
        except Exception as error:
            raise self._failure(error) from error

    @property
    def _client(self) -> SchemaRegistryClient:
        if self._connection.is_glue:
            raise ConfigurationError(
                f"registry.url {self.url} in profiles/ingest.yml is a registry of AWS Glue, which "
                "only sources with framing: glue can use"
            )
        if self._confluent is None:
            self._confluent = SchemaRegistryClient(self._settings)
        return self._confluent

    def _of_glue(self) -> Glue:
        if not self._connection.is_glue:
            raise ConfigurationError(
                f"registry.url {self.url} in profiles/ingest.yml is not a registry of AWS Glue, "
                "whose framing a source uses: give its ARN"
            )
        if self._glue is None:
            self._glue = Glue(self.url)
        return self._glue

    def _apicurio(self) -> Apicurio:
        if self._own is None:
            self._own = Apicurio(self._settings)
        return self._own

    def _own_versions(self, subject: str, ids: Ids) -> list[WriterSchema]:
        numbers = dict.fromkeys(
            version[f"{ids}Id"] for version in self._apicurio().versions(subject)
        )
        found = (self._of_own_id(ids, number) for number in numbers)
        return [writer for writer in found if writer is not None]

    def _of_own_id(self, ids: Ids, number: int) -> WriterSchema | None:
        key = (ids, number)
        if key not in self._by_own_id:
            schema = self._apicurio().content(ids, number)
            if schema is None:
                return None
            references = self._apicurio().references(ids, number)
            self._by_own_id[key] = WriterSchema(number, schema, references)
        return self._by_own_id[key]

    def _version(self, subject: str, number: int) -> WriterSchema:
        key = (subject, number)
        if key not in self._versions:
            registered = self._client.get_version(subject, number)
            if registered.schema_id is None or registered.schema is None:
                raise ServiceUnavailable(f"{self.url} answered without a schema for {subject}")
            self._versions[key] = self._writer_schema(registered.schema_id, registered.schema)
        return self._versions[key]

    def _writer_schema(self, schema_id: int, registered: Any) -> WriterSchema:
        if registered.schema_type not in (None, "AVRO"):
            return WriterSchema(
                schema_id, None, problem=f"a {registered.schema_type} schema, not Avro"
            )
        references: list[AvroSchema] = []
        for reference in registered.references or ():
            try:
                found = self._version(reference.subject, reference.version)
            except SchemaRegistryError as error:
                if error.error_code not in _NOT_THERE:
                    raise
                found = WriterSchema(0, None)
            if found.schema is None:
                return WriterSchema(
                    schema_id,
                    None,
                    problem=f"it refers to {reference.subject} version {reference.version}, "
                    "which is not in the registry",
                )
            references += [*found.references, found.schema]
        return WriterSchema(schema_id, json.loads(registered.schema_str), tuple(references))

    def _failure(self, error: Exception) -> MillraceError:
        """Convert the error of a request."""
        if isinstance(error, SchemaRegistryError):
            status = error.http_status_code
            user = self._connection.username
            who = f"user {user}" if user else "a client without a user"
            if status == HTTPStatus.UNAUTHORIZED:
                return self._mistake("username and password", f"login of {who} failed")
            if status == HTTPStatus.FORBIDDEN:
                return self._mistake("username", f"{who} may not read or register schemas")
        else:
            address = urlsplit(self.url)
            secure = address.scheme == "https"
            port = address.port or (443 if secure else 80)
            tls = self._connection.tls if secure else None
            refusal = web_refusal(Endpoint(address.hostname or "", port, tls, "url"))
            if refusal is not None:
                return self._mistake(refusal.key, refusal.text)
        return ServiceUnavailable(
            f"the schema registry at {self.url} does not answer "
            f"({type(error).__name__}: {' '.join(str(error).split())}): "
            "start it (`sandbox up registry`) or fix registry.url in profiles/ingest.yml"
        )

    def _mistake(self, key: str, text: str) -> ConfigurationError:
        return ConfigurationError(
            f"the schema registry at {self.url} rejects the client: {text} ({key} under "
            f"registry in target {self._target} of profiles/ingest.yml)"
        )
