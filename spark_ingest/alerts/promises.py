"""The maximum ages that the dbt project declares for sources and exposures, by its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_ingest.errors import ConfigurationError, first_problem


class MaxAge(BaseModel):
    """A duration in the format of dbt's ``freshness``: ``{count: 26, period: hour}``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(gt=0)
    period: Literal["minute", "hour", "day"]

    @property
    def length(self) -> timedelta:
        return timedelta(**{f"{self.period}s": self.count})


@dataclass(frozen=True)
class FreshSource:
    """A source with ``freshness``.

    Attributes:
        name: ``<source>.<table>``.
        table: ``schema.identifier`` in the lake.
        loaded_at: dbt's ``loaded_at_field``, an SQL expression.
        max_age: dbt's ``error_after``, or else ``warn_after``.
    """

    name: str
    table: str
    loaded_at: str
    max_age: timedelta


@dataclass(frozen=True)
class FreshExposure:
    """An exposure with ``config.meta.max_age``.

    Attributes:
        max_age: Maximum time since the last build of its models.
        models: Relations, ``schema.name``, of its models by dbt's unique id.
    """

    name: str
    max_age: timedelta
    models: Mapping[str, str]


@dataclass(frozen=True)
class Promises:
    """The declarations of a project.

    Attributes:
        runs: The table of dbt's runs; None if the project has no such source.
        nodes: The unique ids of all models, seeds, snapshots and tests.
        sources: The sources with freshness.
        exposures: The exposures with a maximum age.
    """

    runs: str | None
    nodes: frozenset[str]
    sources: tuple[FreshSource, ...]
    exposures: tuple[FreshExposure, ...]


def read_promises(manifest: Path) -> Promises:
    """Read the declarations from a dbt manifest.

    Raises:
        ConfigurationError: An exposure's ``config.meta.max_age`` is invalid.
    """
    parsed = json.loads(manifest.read_text())
    sources = parsed["sources"].values()
    runs = [
        f"{node['schema']}.{node['identifier']}"
        for node in sources
        if (node["source_name"], node["name"]) == ("dbt", "runs")
    ]
    return Promises(
        runs[0] if runs else None,
        frozenset(parsed.get("nodes", {})) | frozenset(parsed.get("unit_tests", {})),
        tuple(filter(None, map(_source, sources))),
        tuple(
            filter(
                None, (_exposure(e, parsed["nodes"]) for e in parsed.get("exposures", {}).values())
            )
        ),
    )


def _source(node: Mapping[str, Any]) -> FreshSource | None:
    freshness = node.get("freshness") or {}
    # In the manifest a rule that is not set has no count.
    rules = (freshness.get(name) or {} for name in ("error_after", "warn_after"))
    after = next((rule for rule in rules if rule.get("count")), None)
    if after is None or not node.get("loaded_at_field"):
        return None
    return FreshSource(
        f"{node['source_name']}.{node['name']}",
        f"{node['schema']}.{node['identifier']}",
        node["loaded_at_field"],
        MaxAge.model_validate(after).length,
    )


def _exposure(node: Mapping[str, Any], nodes: Mapping[str, Any]) -> FreshExposure | None:
    declared = node["config"].get("meta", {}).get("max_age")
    if declared is None:
        return None
    try:
        max_age = MaxAge.model_validate(declared)
    except ValidationError as error:
        raise ConfigurationError(
            f"{node['original_file_path']}: exposure {node['name']}: "
            f"config.meta.max_age.{first_problem(error)}: write it like "
            "{count: 26, period: hour}"
        ) from error
    models = {
        name: f"{nodes[name]['schema']}.{nodes[name]['alias']}"
        for name in node["depends_on"]["nodes"]
        if name.startswith("model.")
    }
    return FreshExposure(node["name"], max_age.length, models)
