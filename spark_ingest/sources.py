"""The streams: dbt sources with ``config.meta.ingest``, read from the manifest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from spark_ingest.avro.schema import IncompatibleSchema, parse
from spark_ingest.captured import Captured
from spark_ingest.errors import ConfigurationError, first_problem

# The limit of Avro strings and bytes in profiles/spark-defaults.conf.
MAX_VALUE_BYTES = 16 * 1024 * 1024


FramingName = Literal[
    "confluent", "apicurio", "apicurio-headers", "glue", "avro", "json", "string", "bytes"
]


class IngestMeta(BaseModel):
    """``config.meta.ingest`` of a dbt source table.

    Attributes:
        subjects: Registry subjects of the values, if they are named after records; None for
            the subject named after the topic. With framing ``glue`` the name of the schema.
        framing: Wire format of the values: how the schema id is encoded, or the format of
            values without one.
        key: Wire format of the keys, decoded into ``_key``; None if only the raw ``_kafka_key``
            is stored.
        ids: Kind of the ids with Apicurio's framings.
        value_schema: With framing ``avro``, the Avro schema of all values, parsed.
        key_schema: With key ``avro``, the Avro schema of all keys.
        partitioned_by: Iceberg partition transform of the bronze table.
        max_value_bytes: Records with a longer value or key go to quarantine.
        event_time: Timestamp column with the event time; only for reports of the latency.
        captured: Properties of the captured table, if the topic has the changes of one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    topic: str
    subjects: tuple[str, ...] | None = None
    framing: FramingName = "confluent"
    key: FramingName | None = None
    ids: Literal["global", "content"] | None = None
    value_schema: Any = Field(None, alias="schema")
    key_schema: Any = None
    partitioned_by: str = "days(_ingested_at)"
    max_value_bytes: int = Field(MAX_VALUE_BYTES, gt=0)
    event_time: str | None = None
    captured: Captured | None = None

    @field_validator("subjects", mode="before")
    @classmethod
    def _named(cls, subjects: Any) -> Any:
        if subjects is None:
            return None
        is_list = isinstance(subjects, list | tuple) and len(subjects) > 0
        if not is_list or not all(isinstance(s, str) and s.strip() for s in subjects):
            raise ValueError(
                "is not a list of subjects: give their names in the registry, such as "
                "[com.acme.OrderPlaced, com.acme.OrderPaid]"
            )
        for subject in subjects:
            if subjects.count(subject) > 1:
                raise ValueError(f"{subject} is duplicate: remove one")
        return subjects

    @field_validator("value_schema", "key_schema", mode="before")
    @classmethod
    def _parsed(cls, schema: Any) -> Any:
        if not isinstance(schema, str) or not schema.strip().startswith(("{", "[", '"')):
            return schema
        try:
            return json.loads(schema)
        except json.JSONDecodeError as error:
            raise ValueError(f"is not JSON: {error}") from error


@dataclass(frozen=True)
class Stream:
    """One topic and its bronze table.

    Attributes:
        name: ``<source>.<table>`` in dbt.
        table: The bronze table, ``<schema>.<identifier>``, in the lake's catalog.
        description: Description of the source table in the YAML.
        columns: Column descriptions in the YAML, by column name.
        types: Data types by column name, of the columns with one in the YAML.
        file: The YAML file, relative to the project.
        tags: dbt tags of the source table.
    """

    name: str
    table: str
    description: str
    columns: dict[str, str]
    tags: frozenset[str]
    ingest: IngestMeta
    types: dict[str, str] = field(default_factory=dict)
    file: str = ""

    @property
    def topic(self) -> str:
        return self.ingest.topic

    @property
    def subjects(self) -> tuple[str, ...]:
        """The registry subjects of the values."""
        # The name that the serializers of the registry give by default.
        named = self.topic if self.ingest.framing == "glue" else f"{self.topic}-value"
        return self.ingest.subjects or (named,)

    @property
    def record_types(self) -> tuple[str, ...]:
        """Full names of the record types, from their subjects; each is a member of ``value``.

        Empty with one subject, whose fields are the columns.
        """
        several = self.subjects if len(self.subjects) > 1 else ()
        return tuple(each.removeprefix(f"{self.topic}-") for each in several)

    @property
    def source(self) -> str:
        return self.name.partition(".")[0]


def read_streams(manifest: Path) -> list[Stream]:
    """All streams of a dbt manifest, sorted by name.

    Raises:
        ConfigurationError: The manifest is missing or invalid, a block has an unknown or
            malformed key, or two blocks share a topic or a table.
    """
    try:
        nodes = json.loads(manifest.read_text())["sources"].values()
    except FileNotFoundError as error:
        raise ConfigurationError(f"{manifest} does not exist: run `dbt parse`") from error
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{manifest} is not a dbt manifest: run `dbt parse`") from error
    streams = sorted(
        (_stream(node) for node in nodes if "ingest" in node["config"].get("meta", {})),
        key=lambda stream: stream.name,
    )
    _check_unique(streams)
    return streams


def select_streams(streams: Sequence[Stream], selectors: Iterable[str]) -> list[Stream]:
    """Select streams by ``source``, ``source.table`` or ``tag:x``; all without selectors.

    Raises:
        ConfigurationError: There are no streams, or a selector matches none.
    """
    if not streams:
        raise ConfigurationError(
            "no dbt source declares config.meta.ingest: add a block to a _<source>__sources.yml"
        )
    selected = list(selectors)
    for selector in selected:
        if not any(_matches(stream, selector) for stream in streams):
            names = ", ".join(stream.name for stream in streams)
            raise ConfigurationError(f"{selector!r} selects no stream; there are: {names}")
    return [s for s in streams if not selected or any(_matches(s, each) for each in selected)]


def target_folder(project: Path) -> Path:
    """The target path of dbt: ``DBT_TARGET_PATH``, or ``target``."""
    return project / os.environ.get("DBT_TARGET_PATH", "target")


def fresh_manifest(project: Path) -> Path:
    """The project's manifest; runs ``dbt parse`` if a YAML file is newer.

    Raises:
        ConfigurationError: The folder is not a dbt project, or dbt cannot parse it.
    """
    if not (project / "dbt_project.yml").exists():
        raise ConfigurationError(
            f"{project} has no dbt_project.yml: run in the project's folder, "
            "or give --project-dir or --manifest"
        )
    manifest = target_folder(project) / "manifest.json"
    if manifest.exists() and manifest.stat().st_mtime >= _newest_yaml(project):
        return manifest
    # The dbt of this environment, regardless of PATH.
    dbt = Path(sys.executable).with_name("dbt")
    if not dbt.exists():
        raise ConfigurationError(
            f"dbt is not installed next to {sys.executable}: install millrace[dbt], "
            "or give a manifest with --manifest"
        )
    command = [str(dbt), "--quiet", "parse", "--project-dir", str(project)]
    command += ["--target-path", str(manifest.parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, check=False)
    if done.returncode != 0:
        output = " ".join((done.stdout + done.stderr).split())
        raise ConfigurationError(f"dbt cannot parse {project}: {output}")
    # dbt does not rewrite an unchanged file.
    os.utime(manifest)
    return manifest


def _stream(node: dict[str, Any]) -> Stream:
    name = f"{node['source_name']}.{node['name']}"
    try:
        ingest = IngestMeta.model_validate(node["config"]["meta"]["ingest"])
    except ValidationError as error:
        raise ConfigurationError(
            f"{node['original_file_path']}: source {name}: "
            f"config.meta.ingest.{first_problem(error)}"
        ) from error
    if ingest.event_time is not None and ingest.event_time not in node["columns"]:
        reason = "is not a column of the source: add it there, or use another"
        raise _error(node, name, "event_time", f"{ingest.event_time!r} {reason}")
    _check_subjects(node, name, ingest)
    _check_framings(node, name, ingest)
    _check_captured(node, name, ingest)
    return Stream(
        name=name,
        table=f"{node['schema']}.{node['identifier']}",
        description=" ".join(node["description"].split()),
        columns={c["name"]: " ".join(c["description"].split()) for c in node["columns"].values()},
        tags=frozenset(node["tags"]),
        ingest=ingest,
        types={c["name"]: c["data_type"] for c in node["columns"].values() if c.get("data_type")},
        file=node["original_file_path"],
    )


def _check_framings(node: dict[str, Any], name: str, ingest: IngestMeta) -> None:
    """Check that framings have the keys that they need, and no others."""

    def fail(key: str, reason: str) -> None:
        raise _error(node, name, key, reason)

    both = (("schema", "framing"), ("key_schema", "key"))
    for (key, owner), schema, framing in zip(
        both, (ingest.value_schema, ingest.key_schema), (ingest.framing, ingest.key), strict=True
    ):
        if framing == "avro" and schema is None:
            fail(key, f"is missing: {owner}: avro has no schema ids, so a schema must be given")
        if framing != "avro" and schema is not None:
            fail(key, f"is not used with {owner}: {framing}: remove it, or set {owner}: avro")
        if schema is not None:
            try:
                parse(schema)
            except IncompatibleSchema as error:
                fail(key, str(error))
    if ingest.ids and not {"apicurio", "apicurio-headers"} & {ingest.framing, ingest.key}:
        fail("ids", "is not used without an apicurio framing: remove it")
    if ingest.key == "bytes":
        fail("key", "bytes are in _kafka_key already: remove it")
    columns = {c["name"]: c.get("data_type") for c in node["columns"].values()}
    of_value = {n: kind for n, kind in columns.items() if not n.startswith("_")}
    if ingest.framing == "json" and not of_value:
        fail("framing", "json needs the source's columns with their data_type")
    for column, kind in of_value.items():
        if ingest.framing == "json" and not kind:
            fail("framing", f"json needs a data_type for the column {column}")
    if ingest.key == "json" and not columns.get("_key"):
        fail("key", "json needs a column _key with a data_type, struct<…>")


def _check_subjects(node: dict[str, Any], name: str, ingest: IngestMeta) -> None:
    """Check that subjects fit the framing, and are several only without row columns."""
    if ingest.subjects is None:
        return
    if ingest.framing not in ("confluent", "glue"):
        reason = f"are not used with framing: {ingest.framing}, only with confluent and glue: "
        if ingest.framing.startswith("apicurio"):
            reason += "artifacts with Apicurio ids are looked up by the topic's name; "
        raise _error(node, name, "subjects", f"{reason}remove them")
    if len(ingest.subjects) == 1:
        return
    if ingest.framing == "glue":
        raise _error(node, name, "subjects", "are several: framing: glue has one schema of a topic")
    shape = "with several subjects each type has its fields in a member of the column value"
    if ingest.captured is not None:
        reason = f"{shape}, but a captured table has rows of one type: give one subject"
        raise _error(node, name, "captured", reason)
    if ingest.event_time is not None:
        reason = f"{shape}, so no column has the event time of all events: remove it"
        raise _error(node, name, "event_time", reason)


def _check_captured(node: dict[str, Any], name: str, ingest: IngestMeta) -> None:
    """Check that the records of a captured table have the columns that it names."""
    if ingest.captured is None:
        return
    if ingest.framing in ("string", "bytes"):
        reason = f"a row has columns, but framing: {ingest.framing} has a single value"
        raise _error(node, name, "captured", reason)
    types = {c["name"]: c.get("data_type") for c in node["columns"].values()}
    mistake = ingest.captured.mistake(types)
    if mistake is not None:
        raise _error(node, name, f"captured.{mistake[0]}", mistake[1])


def _error(node: dict[str, Any], name: str, key: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{node['original_file_path']}: source {name}: config.meta.ingest.{key}: {reason}"
    )


def _check_unique(streams: Sequence[Stream]) -> None:
    for what in ("topic", "table"):
        seen: dict[str, str] = {}
        for stream in streams:
            value = getattr(stream, what)
            if value in seen:
                raise ConfigurationError(
                    f"sources {seen[value]} and {stream.name} declare the same {what} {value}"
                )
            seen[value] = stream.name


def _matches(stream: Stream, selector: str) -> bool:
    if selector.startswith("tag:"):
        return selector.removeprefix("tag:") in stream.tags
    return selector in (stream.name, stream.source)


def _newest_yaml(project: Path) -> float:
    # Folders too: deleting a file only changes the mtime of its folder.
    models = project / "models"
    files = [project / "dbt_project.yml", models]
    files += [
        path for path in models.rglob("*") if path.is_dir() or path.suffix in (".yml", ".yaml")
    ]
    return max(path.stat().st_mtime for path in files)
