"""What the dbt project promises of its sources and exposures, read from the manifest."""

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
    """A length of time as dbt's ``freshness`` has it: ``{count: 26, period: hour}``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(gt=0)
    period: Literal["minute", "hour", "day"]

    @property
    def length(self) -> timedelta:
        return timedelta(**{f"{self.period}s": self.count})


@dataclass(frozen=True)
class FreshSource:
    """A source that declares how old its newest row may be.

    Attributes:
        name: ``<source>.<table>``.
        table: ``schema.identifier`` in the lake.
        loaded_at: The expression that says when a row was loaded, dbt's ``loaded_at_field``.
        max_age: dbt's ``error_after``, or ``warn_after`` where there is no such.
    """

    name: str
    table: str
    loaded_at: str
    max_age: timedelta


@dataclass(frozen=True)
class FreshExposure:
    """An exposure with ``config.meta.max_age``.

    Attributes:
        max_age: How old what it shows may be.
        models: What it depends on: the relation, ``schema.name``, by dbt's unique id.
    """

    name: str
    max_age: timedelta
    models: Mapping[str, str]


@dataclass(frozen=True)
class Promises:
    """What a project promises.

    Attributes:
        runs: The table of dbt's runs; None where the project has no such source.
        nodes: The unique ids of all models, seeds, snapshots and tests.
        sources: Those with freshness.
        exposures: Those with a greatest age.
    """

    runs: str | None
    nodes: frozenset[str]
    sources: tuple[FreshSource, ...]
    exposures: tuple[FreshExposure, ...]


def read_promises(manifest: Path) -> Promises:
    """What a manifest of dbt says.

    Raises:
        ConfigurationError: An exposure's ``config.meta.max_age`` is none.
    """
    made = json.loads(manifest.read_text())
    sources = made["sources"].values()
    runs = [
        f"{node['schema']}.{node['identifier']}"
        for node in sources
        if (node["source_name"], node["name"]) == ("dbt", "runs")
    ]
    return Promises(
        runs[0] if runs else None,
        frozenset(made.get("nodes", {})) | frozenset(made.get("unit_tests", {})),
        tuple(filter(None, map(_source, sources))),
        tuple(
            filter(None, (_exposure(e, made["nodes"]) for e in made.get("exposures", {}).values()))
        ),
    )


def _source(node: Mapping[str, Any]) -> FreshSource | None:
    freshness = node.get("freshness") or {}
    # dbt writes a rule that is not there as one without a count.
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
