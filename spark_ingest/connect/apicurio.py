"""Client of Apicurio's native API, for its global and content ids."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_ingest.avro.schema import AvroSchema
from spark_ingest.errors import ConfigurationError

_GROUP = "default"
_PATH = "/apis/"
_MOST = 500


class _Client(SchemaRegistryClient):
    """The Confluent client, with its certificates, login and retries, for other paths."""

    def get(self, path: str) -> Any:
        client: Any = self._rest_client
        return client.get(path)


class Apicurio:
    """Schemas by global id (one per version) and by content id (one per content)."""

    def __init__(self, settings: Mapping[str, str | int]) -> None:
        """Create the client from the settings of the Confluent client.

        Raises:
            ConfigurationError: The URL is not of an Apicurio registry.
        """
        url = str(settings["url"])
        base, found, _ = url.partition(_PATH)
        if not found:
            raise ConfigurationError(
                f"registry.url {url} in profiles/ingest.yml is not of an Apicurio registry, "
                "whose ids a source uses: such a URL contains /apis/ccompat/v7"
            )
        self._client = _Client({**settings, "url": f"{base}{_PATH}registry/v3"})

    def versions(self, artifact: str) -> list[Mapping[str, Any]]:
        """The versions of an artifact, oldest first, each with its ids; empty if none."""
        path = f"groups/{_GROUP}/artifacts/{quote(artifact, safe='')}/versions"
        found: list[Mapping[str, Any]] = []
        while True:
            page = self._get(f"{path}?limit={_MOST}&offset={len(found)}&orderby=globalId&order=asc")
            versions = [] if page is None else page["versions"]
            found += versions
            if len(versions) < _MOST:
                return found

    def content(self, ids: str, number: int) -> AvroSchema | None:
        """A schema, parsed; None when there is none.

        ``ids`` is ``global`` or ``content``.
        """
        return self._get(f"ids/{ids}Ids/{number}")

    def references(self, ids: str, number: int) -> tuple[AvroSchema, ...]:
        """The schemas that a schema refers to, each after those that it refers to itself."""
        found: list[AvroSchema] = []
        for each in self._get(f"ids/{ids}Ids/{number}/references") or ():
            group, artifact, version = (
                quote(str(each.get(key) or _GROUP), safe="")
                for key in ("groupId", "artifactId", "version")
            )
            known = self._get(f"groups/{group}/artifacts/{artifact}/versions/{version}")
            schema = None if known is None else self.content("content", known["contentId"])
            if known is not None and schema is not None:
                found += [*self.references("content", known["contentId"]), schema]
        return tuple(found)

    def _get(self, path: str) -> Any:
        try:
            return self._client.get(path)
        except SchemaRegistryError as error:
            if error.http_status_code == HTTPStatus.NOT_FOUND:
                return None
            raise
