"""The streams that the sandbox knows: their topics, their Avro schemas, their keys.

Each source has a folder here with its ``*.avsc`` and the generators of its events. The
``field`` in a key's ``.avsc`` is ours: it names the field of the value that is the key, and is
not registered. The topics are those of the dbt sources, which declare them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError


@dataclass(frozen=True)
class Stream:
    """One topic of Avro records in Confluent framing (keys and values).

    Attributes:
        name: ``<source>.<entity>``, as commands take it and dbt names the source.
        value_schema: Avro schema of the values, parsed from its ``.avsc``.
        key_schema: Avro schema of the keys.
        key_field: The value's field that is the key; a record where it is null has none.
        partitions: How many partitions the sandbox gives the topic.
        own_topic: Its topic where no dbt source needs to declare it.
    """

    name: str
    value_schema: dict[str, Any]
    key_schema: dict[str, Any]
    key_field: str
    partitions: int = 4
    own_topic: str | None = None

    @property
    def topic(self) -> str:
        """The Kafka topic: its own, or that which the dbt source declares.

        Raises:
            ConfigurationError: No source declares it.
        """
        if self.own_topic is not None:
            return self.own_topic
        topic = declared_topics().get(self.name)
        if topic is None:
            source, _, entity = self.name.partition(".")
            raise ConfigurationError(
                f"no dbt source declares {self.name}: give table {entity} of source {source} "
                f"a config.meta.ingest.topic in models/staging/{source}/_{source}__sources.yml"
            )
        return topic

    @property
    def value_subject(self) -> str:
        return f"{self.topic}-value"

    @property
    def key_subject(self) -> str:
        return f"{self.topic}-key"


@cache
def declared_topics() -> Mapping[str, str]:
    """Topics by stream, of all dbt sources.

    Read as they are written: dbt would take seconds to parse.
    """
    found = {}
    for file in sorted((PROJECT / "models/staging").glob("*/_*__sources.yml")):
        for source in yaml.safe_load(file.read_text("utf-8"))["sources"]:
            for table in source["tables"]:
                ingest = table.get("config", {}).get("meta", {}).get("ingest")
                if ingest is not None:
                    found[f"{source['name']}.{table['name']}"] = str(ingest["topic"])
    return found


def published_topics() -> list[str]:
    """Topics that exposures publish, read as they are written."""
    return [
        str(exposure["config"]["meta"]["publish"]["topic"])
        for file in sorted((PROJECT / "models").rglob("_*__exposures.yml"))
        for exposure in yaml.safe_load(file.read_text("utf-8"))["exposures"]
        if "publish" in exposure.get("config", {}).get("meta", {})
    ]


def _streams() -> dict[str, Stream]:
    """A stream for each ``<source>/<entity>-value.avsc`` beside this file."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*/*-value.avsc")):
        source, entity = file.parent.name, file.stem.removesuffix("-value")
        key_file = file.with_name(f"{entity}-key.avsc")
        name = f"{source}.{entity}"
        value, key = (json.loads(one.read_text("utf-8")) for one in (file, key_file))
        found[name] = Stream(name, value, key, key.pop("field"))
    return found


STREAMS = _streams()
