"""The publications: dbt exposures with ``config.meta.publish``, read from the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_ingest.errors import ConfigurationError, first_problem

Envelope = Literal["upsert", "changes"]


class PublishMeta(BaseModel):
    """``config.meta.publish`` of a dbt exposure.

    Attributes:
        topic: The Kafka topic; created if missing.
        key: The primary-key columns of the mart.
        subject: The registry subject of the values; by default ``<topic>-value``.
        envelope: ``upsert``: the current row, or a tombstone for a deleted one. ``changes``: each
            change with its operation (``_op``), a delete with the last values.
        partitions: Number of partitions of a created topic.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: str
    key: tuple[str, ...] = Field(min_length=1)
    subject: str | None = None
    envelope: Envelope = "upsert"
    partitions: int = Field(1, gt=0)


@dataclass(frozen=True)
class MartColumn:
    """A column of a mart's contract.

    Attributes:
        description: Description in the YAML.
        is_required: Whether it has a ``not_null`` or ``primary_key`` constraint.
    """

    name: str
    description: str
    is_required: bool


@dataclass(frozen=True)
class Publication:
    """A mart and the topic to which its rows are published.

    Attributes:
        name: The exposure's name.
        mart: The mart's table, ``schema.name``, in the lake's catalog.
        description: Description of the model in the YAML.
        columns: The published columns: those of the contract, except metadata (``_`` prefix).
        meta: The ``publish`` block.
        file: The YAML file, relative to the project.
    """

    name: str
    mart: str
    description: str
    columns: tuple[MartColumn, ...]
    meta: PublishMeta
    file: str

    @property
    def topic(self) -> str:
        return self.meta.topic

    @property
    def key(self) -> tuple[str, ...]:
        return self.meta.key

    @property
    def subjects(self) -> tuple[str, str]:
        """The registry subjects of key and value."""
        return f"{self.topic}-key", self.meta.subject or f"{self.topic}-value"

    def error(self, key: str, reason: str) -> ConfigurationError:
        """The error for a key of the ``publish`` block."""
        return ConfigurationError(
            f"{self.file}: exposure {self.name}: config.meta.publish.{key}: {reason}"
        )


def read_publications(manifest: Path) -> list[Publication]:
    """All publications of a dbt manifest, sorted by name.

    Raises:
        ConfigurationError: A block has an unknown or malformed key, its exposure does not depend
            on exactly one model, the model has no contract or is a view, the key is not of its
            columns or nullable, or two blocks or a source share a topic.
    """
    parsed = json.loads(manifest.read_text())
    found = sorted(
        (
            _publication(node, parsed["nodes"])
            for node in parsed.get("exposures", {}).values()
            if "publish" in node["config"].get("meta", {})
        ),
        key=lambda publication: publication.name,
    )
    _check_topics(found, parsed["sources"].values())
    return found


def select_publications(
    publications: Sequence[Publication], selectors: Iterable[str]
) -> list[Publication]:
    """Select publications by exposure or topic; all without selectors.

    Raises:
        ConfigurationError: There are no publications, or a selector matches none.
    """
    if not publications:
        raise ConfigurationError(
            "no dbt exposure declares config.meta.publish: add a block to a "
            "_<domain>__exposures.yml (docs/publish.md)"
        )
    names_or_topics = list(selectors)
    for selector in names_or_topics:
        if not any(selector in (p.name, p.topic) for p in publications):
            names = ", ".join(p.name for p in publications)
            raise ConfigurationError(f"{selector!r} selects no publication; there are: {names}")
    if not names_or_topics:
        return list(publications)
    return [p for p in publications if {p.name, p.topic}.intersection(names_or_topics)]


def _publication(node: dict[str, Any], nodes: dict[str, Any]) -> Publication:
    where = f"{node['original_file_path']}: exposure {node['name']}: config.meta.publish"
    try:
        meta = PublishMeta.model_validate(node["config"]["meta"]["publish"])
    except ValidationError as error:
        raise ConfigurationError(f"{where}.{first_problem(error)}") from error
    models = [name for name in node["depends_on"]["nodes"] if name in nodes]
    if len(models) != 1:
        raise ConfigurationError(
            f"{where}: depends_on has {len(models)} models: it must have only the mart to publish"
        )
    model = nodes[models[0]]
    if not model.get("contract", {}).get("enforced"):
        raise ConfigurationError(
            f"{where}: {model['name']} has no enforced contract, which the Avro schema needs: "
            "set config.contract.enforced: true"
        )
    if model["config"]["materialized"] == "view":
        raise ConfigurationError(
            f"{where}: {model['name']} is a view, which has no snapshots: publish a table"
        )
    publication = Publication(
        name=node["name"],
        mart=f"{model['schema']}.{model['alias']}",
        description=" ".join(model["description"].split()),
        columns=tuple(
            _column(column)
            for column in model["columns"].values()
            if not column["name"].startswith("_")
        ),
        meta=meta,
        file=node["original_file_path"],
    )
    required = {c.name: c.is_required for c in publication.columns}
    for column in meta.key:
        if column not in required:
            names = ", ".join(required)
            reason = f"{column!r} is not a column of {model['name']}, which has {names}"
            raise publication.error("key", reason)
        if not required[column]:
            reason = f"{column} is nullable: add a not_null constraint, or use another key"
            raise publication.error("key", reason)
    return publication


def _column(column: dict[str, Any]) -> MartColumn:
    kinds = {constraint["type"] for constraint in column.get("constraints", ())}
    return MartColumn(
        column["name"],
        " ".join(column["description"].split()),
        bool(kinds & {"not_null", "primary_key"}),
    )


def _check_topics(found: Sequence[Publication], sources: Iterable[Any]) -> None:
    """Check that no other publication or source uses the topic of a publication."""
    users = {
        source["config"]["meta"]["ingest"].get(
            "topic"
        ): f"source {source['source_name']}.{source['name']} reads"
        for source in sources
        if "ingest" in source["config"].get("meta", {})
    }
    for publication in found:
        if publication.topic in users:
            reason = f"{publication.topic} is the topic that {users[publication.topic]}"
            raise publication.error("topic", f"{reason}: use another topic")
        users[publication.topic] = f"exposure {publication.name} writes"
