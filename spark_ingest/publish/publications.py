"""The publications, read from the dbt manifest: they are declared once, as dbt's exposures."""

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
        topic: The Kafka topic; made where it does not exist.
        key: The columns that name a row: the mart's primary key.
        subject: The registry's subject of the values; ``<topic>-value`` when absent.
        envelope: ``upsert``: the row as it is now, a tombstone once it is gone. ``changes``:
            each change with what it was (``_op``), a row that is gone with its last values.
        partitions: Of a topic that is made.
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
        description: What it says, from the YAML.
        is_required: Whether a constraint says that it is never null.
    """

    name: str
    description: str
    is_required: bool


@dataclass(frozen=True)
class Publication:
    """A mart and the topic that takes its rows.

    Attributes:
        name: The exposure's name.
        mart: The mart's table, ``schema.name``, in the lake's catalog.
        description: What a row is, from the YAML.
        columns: What is published of the contract: all but ``_`` names, which are the
            bookkeeping of ingest.
        meta: How it is published.
        file: The YAML, relative to the project.
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
        """The registry's subjects of key and value."""
        return f"{self.topic}-key", self.meta.subject or f"{self.topic}-value"

    def refused(self, key: str, said: str) -> ConfigurationError:
        """The error of a key of the block that is not right."""
        return ConfigurationError(
            f"{self.file}: exposure {self.name}: config.meta.publish.{key}: {said}"
        )


def read_publications(manifest: Path) -> list[Publication]:
    """All publications that a dbt manifest declares, by name.

    Raises:
        ConfigurationError: A block has an unknown or malformed key, its exposure depends on
            another number of models than one, the model has no contract, the key is not of
            its columns, or two blocks or a source share a topic.
    """
    made = json.loads(manifest.read_text())
    found = sorted(
        (
            _publication(node, made["nodes"])
            for node in made.get("exposures", {}).values()
            if "publish" in node["config"].get("meta", {})
        ),
        key=lambda publication: publication.name,
    )
    _refuse_shared(found, made["sources"].values())
    return found


def select_publications(
    publications: Sequence[Publication], selectors: Iterable[str]
) -> list[Publication]:
    """Those that a selector names, by exposure or topic; all when there is no selector.

    Raises:
        ConfigurationError: There is no publication at all, or a selector names none.
    """
    if not publications:
        raise ConfigurationError(
            "no dbt exposure declares config.meta.publish: add a block to a "
            "_<domain>__exposures.yml (docs/publish.md)"
        )
    wanted = list(selectors)
    for selector in wanted:
        if not any(selector in (p.name, p.topic) for p in publications):
            names = ", ".join(p.name for p in publications)
            raise ConfigurationError(f"{selector!r} selects no publication; there are: {names}")
    return [p for p in publications if not wanted or any(w in (p.name, p.topic) for w in wanted)]


def _publication(node: dict[str, Any], nodes: dict[str, Any]) -> Publication:
    where = f"{node['original_file_path']}: exposure {node['name']}: config.meta.publish"
    try:
        meta = PublishMeta.model_validate(node["config"]["meta"]["publish"])
    except ValidationError as error:
        raise ConfigurationError(f"{where}.{first_problem(error)}") from error
    models = [name for name in node["depends_on"]["nodes"] if name in nodes]
    if len(models) != 1:
        raise ConfigurationError(
            f"{where}: depends_on names {len(models)} models: name the one mart that is published"
        )
    model = nodes[models[0]]
    if not model.get("contract", {}).get("enforced"):
        raise ConfigurationError(
            f"{where}: {model['name']} has no enforced contract, from which the Avro schema is "
            "made: give it one (config.contract.enforced: true)"
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
            said = f"{column!r} is no column of {model['name']}, which has {names}"
            raise publication.refused("key", said)
        if not required[column]:
            said = f"{column} may be null: give it a not_null constraint, or take another key"
            raise publication.refused("key", said)
    return publication


def _column(column: dict[str, Any]) -> MartColumn:
    kinds = {constraint["type"] for constraint in column.get("constraints", ())}
    return MartColumn(
        column["name"],
        " ".join(column["description"].split()),
        bool(kinds & {"not_null", "primary_key"}),
    )


def _refuse_shared(found: Sequence[Publication], sources: Iterable[Any]) -> None:
    taken = {
        source["config"]["meta"]["ingest"].get(
            "topic"
        ): f"source {source['source_name']}.{source['name']} reads"
        for source in sources
        if "ingest" in source["config"].get("meta", {})
    }
    for publication in found:
        if publication.topic in taken:
            said = f"{publication.topic} is what {taken[publication.topic]}"
            raise publication.refused("topic", f"{said}: name another topic")
        taken[publication.topic] = f"exposure {publication.name} writes"
