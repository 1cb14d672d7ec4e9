"""The streams, read from the dbt manifest: dbt's sources are the one place they are declared."""

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

# As much as profiles/spark-defaults.conf lets an Avro string or bytes have.
MAX_VALUE_BYTES = 16 * 1024 * 1024


FramingName = Literal[
    "confluent", "apicurio", "apicurio-headers", "avro", "json", "string", "bytes"
]


class IngestMeta(BaseModel):
    """``config.meta.ingest`` of a dbt source table.

    Attributes:
        subjects: The registry's subjects of its values, where they are named after records;
            None for the one that is named after the topic.
        framing: How a value names its schema, or what it is where it names none.
        key: The same of the key where it is decoded into ``_key``; None leaves only the raw
            ``_kafka_key``.
        ids: Whose numbers the ids of Apicurio's framings are.
        value_schema: With framing ``avro`` the Avro schema of all values, parsed.
        key_schema: With key ``avro`` that of all keys.
        partitioned_by: Iceberg partition transform of the bronze table.
        max_value_bytes: A record whose value or key is longer goes to quarantine.
        event_time: The column, a timestamp, that says when the event happened; for reports
            of how old events are, not for ingest.
        captured: What is known of a database's table, where the topic has its changes.
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
                "is no list of subjects: write their names as the registry has them, such as "
                "[com.acme.OrderPlaced, com.acme.OrderPaid]"
            )
        for subject in subjects:
            if subjects.count(subject) > 1:
                raise ValueError(f"{subject} is there twice: leave one out")
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
    """One topic and the bronze table that takes it.

    Attributes:
        name: ``<source>.<table>`` as dbt names it.
        table: The bronze table, ``<schema>.<identifier>``, in the lake's catalog.
        description: What a row is, from the YAML.
        columns: Column descriptions by column name, from the YAML.
        types: Data types by column name, where the YAML gives them.
        file: The YAML, relative to the project.
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
        """The registry's subjects of the values."""
        return self.ingest.subjects or (f"{self.topic}-value",)

    @property
    def record_types(self) -> tuple[str, ...]:
        """Full names of the records that have a member each, as their subjects are named.

        Empty with one subject: its fields are the columns.
        """
        several = self.subjects if len(self.subjects) > 1 else ()
        return tuple(each.removeprefix(f"{self.topic}-") for each in several)

    @property
    def source(self) -> str:
        return self.name.partition(".")[0]


def read_streams(manifest: Path) -> list[Stream]:
    """All streams that a dbt manifest declares, by name.

    Raises:
        ConfigurationError: The manifest is missing or not one, a block has an unknown or
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
    _refuse_shared(streams)
    return streams


def select_streams(streams: Sequence[Stream], selectors: Iterable[str]) -> list[Stream]:
    """Those that a selector names; all of them when there is no selector.

    Each is ``source``, ``source.table`` or ``tag:x``.

    Raises:
        ConfigurationError: There is no stream at all, or a selector names none.
    """
    if not streams:
        raise ConfigurationError(
            "no dbt source declares config.meta.ingest: add a block to a _<source>__sources.yml"
        )
    wanted = list(selectors)
    for selector in wanted:
        if not any(_matches(stream, selector) for stream in streams):
            names = ", ".join(stream.name for stream in streams)
            raise ConfigurationError(f"{selector!r} selects no stream; there are: {names}")
    return [s for s in streams if not wanted or any(_matches(s, w) for w in wanted)]


def target_folder(project: Path) -> Path:
    """Where dbt writes what it makes of a project: its own ``DBT_TARGET_PATH``, or ``target``."""
    return project / os.environ.get("DBT_TARGET_PATH", "target")


def fresh_manifest(project: Path) -> Path:
    """The project's manifest, parsed again by dbt when a YAML is newer.

    Raises:
        ConfigurationError: The folder is no dbt project, or dbt cannot parse it.
    """
    if not (project / "dbt_project.yml").exists():
        raise ConfigurationError(
            f"{project} holds no dbt_project.yml: run in the project's folder, "
            "or give --project-dir or --manifest"
        )
    manifest = target_folder(project) / "manifest.json"
    if manifest.exists() and manifest.stat().st_mtime >= _newest_yaml(project):
        return manifest
    # The dbt of this environment, whatever PATH says.
    dbt = Path(sys.executable).with_name("dbt")
    if not dbt.exists():
        raise ConfigurationError(
            f"dbt is not installed beside {sys.executable}: install millrace[dbt], "
            "or give a manifest with --manifest"
        )
    command = [str(dbt), "--quiet", "parse", "--project-dir", str(project)]
    command += ["--target-path", str(manifest.parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, check=False)
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())
        raise ConfigurationError(f"dbt cannot parse {project}: {said}")
    # dbt leaves the file as it is when nothing changed in it.
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
        said = "is none of the source's columns: describe it there, or name another"
        raise _refused(node, name, "event_time", f"{ingest.event_time!r} {said}")
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
    """Refuse a framing without what it needs, and what a framing has no use for."""

    def refuse(key: str, said: str) -> None:
        raise _refused(node, name, key, said)

    both = (("schema", "framing"), ("key_schema", "key"))
    for (key, owner), schema, framing in zip(
        both, (ingest.value_schema, ingest.key_schema), (ingest.framing, ingest.key), strict=True
    ):
        if framing == "avro" and schema is None:
            refuse(key, f"is missing: {owner}: avro names no schema, so give the one there is")
        if framing != "avro" and schema is not None:
            refuse(key, f"has no use with {owner}: {framing}: leave it out, or set avro there")
        if schema is not None:
            try:
                parse(schema)
            except IncompatibleSchema as error:
                refuse(key, str(error))
    if ingest.ids and not {"apicurio", "apicurio-headers"} & {ingest.framing, ingest.key}:
        refuse("ids", "has no use without an apicurio framing: leave it out")
    if ingest.key == "bytes":
        refuse("key", "bytes are in _kafka_key already: leave it out")
    columns = {c["name"]: c.get("data_type") for c in node["columns"].values()}
    of_value = {n: kind for n, kind in columns.items() if not n.startswith("_")}
    if ingest.framing == "json" and not of_value:
        refuse("framing", "json needs the source's columns, each with its data_type")
    for column, kind in of_value.items():
        if ingest.framing == "json" and not kind:
            refuse("framing", f"json needs a data_type for the column {column}")
    if ingest.key == "json" and not columns.get("_key"):
        refuse("key", "json needs a column _key with a data_type, struct<…>")


def _check_subjects(node: dict[str, Any], name: str, ingest: IngestMeta) -> None:
    """Refuse subjects where no record has an id of theirs, and what needs columns of one type."""
    if ingest.subjects is None:
        return
    if ingest.framing != "confluent":
        said = f"have no use with framing: {ingest.framing}, but with confluent alone: "
        if ingest.framing.startswith("apicurio"):
            said += "by Apicurio's own ids artifacts are looked for under the topic's name; "
        raise _refused(node, name, "subjects", f"{said}leave them out")
    if len(ingest.subjects) == 1:
        return
    shape = "with several subjects each type has its fields in a member of the column value"
    if ingest.captured is not None:
        said = f"{shape}, and a captured table has rows of one type: name one subject"
        raise _refused(node, name, "captured", said)
    if ingest.event_time is not None:
        said = f"{shape}, so no column says when all events happened: leave it out"
        raise _refused(node, name, "event_time", said)


def _check_captured(node: dict[str, Any], name: str, ingest: IngestMeta) -> None:
    """Refuse a captured table whose records have no columns, or not those that it names."""
    if ingest.captured is None:
        return
    if ingest.framing in ("string", "bytes"):
        said = f"a row has columns, and framing: {ingest.framing} makes one of all"
        raise _refused(node, name, "captured", said)
    types = {c["name"]: c.get("data_type") for c in node["columns"].values()}
    mistake = ingest.captured.mistake(types)
    if mistake is not None:
        raise _refused(node, name, f"captured.{mistake[0]}", mistake[1])


def _refused(node: dict[str, Any], name: str, key: str, said: str) -> ConfigurationError:
    return ConfigurationError(
        f"{node['original_file_path']}: source {name}: config.meta.ingest.{key}: {said}"
    )


def _refuse_shared(streams: Sequence[Stream]) -> None:
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
    # Folders too: a deleted file moves only its folder's time.
    models = project / "models"
    files = [project / "dbt_project.yml", models]
    files += [
        path for path in models.rglob("*") if path.is_dir() or path.suffix in (".yml", ".yaml")
    ]
    return max(path.stat().st_mtime for path in files)
