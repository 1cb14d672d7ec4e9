"""Client of AWS Glue Schema Registry."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any
from uuid import UUID

from spark_ingest.avro.framing import GLUE
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

_NOT_THERE = "EntityNotFoundException"
_DENIED = (
    *("AccessDeniedException", "ExpiredTokenException", "InvalidSignatureException"),
    *("UnrecognizedClientException", "IncompleteSignatureException"),
)
_NO_LOGIN = ("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError")
_SECONDS = 10


class Glue:
    """The schemas of one registry, with a cache, because an available version never changes."""

    def __init__(self, arn: str) -> None:
        """Create the client; ``arn`` is that of the registry.

        Raises:
            ConfigurationError: boto3 is not installed.
        """
        self._arn = arn
        _, _, _, region, _, path = arn.split(":")
        self._name = path.partition("/")[2]
        try:
            boto3, config = import_module("boto3"), import_module("botocore.config")
        except ImportError as error:
            raise ConfigurationError(
                f"registry.url {arn} requires boto3: pip install 'millrace[msk]'"
            ) from error
        waits = config.Config(
            connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"mode": "standard"}
        )
        self._client = boto3.client("glue", region_name=region, config=waits)
        self._versions: dict[tuple[str, int], WriterSchema | None] = {}
        self._known: dict[int, tuple[UUID, WriterSchema]] = {}

    def versions(self, name: str) -> list[WriterSchema]:
        """The available versions of a schema, oldest first; empty if it does not exist.

        Raises:
            ConfigurationError: AWS denies access, or there are no credentials.
            ServiceUnavailable: It is unavailable.
        """
        found = self._ask("get_schema", name)
        if found is None:
            return []
        numbers = range(1, found["LatestSchemaVersion"] + 1)
        versions = (self._version(name, number) for number in numbers)
        return [version for version in versions if version is not None]

    def schema(self, number: int) -> WriterSchema | None:
        """A version read before, by its id in :data:`GLUE`'s framing; None if there is none.

        A version of a schema that no source names cannot be found by a part of its UUID.
        """
        known = self._known.get(number)
        return None if known is None else known[1]

    def _version(self, name: str, number: int) -> WriterSchema | None:
        key = (name, number)
        if key not in self._versions:
            of = {"VersionNumber": number}
            found = self._ask("get_schema_version", name, SchemaVersionNumber=of)
            if found is not None and found["Status"] == "PENDING":
                return None
            self._versions[key] = None
            # Records of no other version exist.
            if found is not None and found["Status"] == "AVAILABLE":
                self._versions[key] = self._writer_schema(found)
        return self._versions[key]

    def _writer_schema(self, version: dict[str, Any]) -> WriterSchema:
        uuid = UUID(version["SchemaVersionId"])
        number = int.from_bytes(uuid.bytes[: GLUE.id_bytes], "big")
        kind = version["DataFormat"]
        if kind == "AVRO":
            writer = WriterSchema(number, json.loads(version["SchemaDefinition"]))
        else:
            writer = WriterSchema(number, None, problem=f"a {kind} schema, not Avro")
        known = self._known.setdefault(number, (uuid, writer))
        if known[0] != uuid:
            raise ConfigurationError(
                f"{self._arn}: the schema versions {known[0]} and {uuid} begin alike, so records "
                "of them cannot be distinguished: register one of them again"
            )
        return writer

    def _ask(self, action: str, name: str, **request: Any) -> dict[str, Any] | None:
        """The answer about the schema of a name; None if there is none."""
        schema = {"RegistryName": self._name, "SchemaName": name}
        errors: Any = import_module("botocore.exceptions")
        try:
            answer: dict[str, Any] = getattr(self._client, action)(SchemaId=schema, **request)
        except errors.ClientError as error:
            code = error.response["Error"]["Code"]
            if code == _NOT_THERE:
                return None
            if code in _DENIED:
                raise ConfigurationError(
                    f"{self._arn} denies access ({error}): the role needs glue:GetSchema and "
                    "glue:GetSchemaVersion"
                ) from error
            raise self._unavailable(error) from error
        except errors.BotoCoreError as error:
            if type(error).__name__ in _NO_LOGIN:
                raise ConfigurationError(
                    f"{self._arn}: {error}: give the process an identity of AWS, such as a role "
                    "or AWS_PROFILE"
                ) from error
            raise self._unavailable(error) from error
        return answer

    def _unavailable(self, error: Exception) -> ServiceUnavailable:
        return ServiceUnavailable(f"{self._arn} does not answer ({error})")
