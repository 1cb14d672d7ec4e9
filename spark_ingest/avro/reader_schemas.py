"""The writer schemas of a topic, and the reader schema for each.

Types are named by their column's path, so that names of writer schemas cannot conflict: an enum
or a fixed may be renamed, and a record may have different versions in two fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_ingest.avro import column_types
from spark_ingest.avro.json_text import OWN
from spark_ingest.avro.schema import PRIMITIVES, AvroSchema, AvroType, digits

WRAPPED = "value"
# Namespaces that do not conflict with field names.
_NAMESPACE = "bronze__"
_WRAPPER = {"type": "record", "name": "it", "namespace": "wrapper__"}


@dataclass(frozen=True)
class Reading:
    """How to read the records of some writer schemas as the topic's columns.

    Attributes:
        ids: The schema ids; several if the schemas are equivalent.
        writer: The writer schema, with types named by path, as a record.
        reader: The reader schema, with the fields of all writer schemas, as a record.
        cast: Whether the result has a narrower type than the columns.
    """

    ids: tuple[int, ...]
    writer: AvroSchema
    reader: AvroSchema
    cast: bool = False


def readings(fitting: dict[int, AvroType], merged: AvroType, wrapped: bool) -> tuple[Reading, ...]:
    """How to read the records of each schema; equivalent schemas share a reading.

    ``fitting`` has the types by schema id; ``wrapped`` puts the value into a field ``value``, if
    it is not always a record.
    """
    alike: dict[tuple[str, str], Reading] = {}
    for number, mine in fitting.items():
        speller = _Speller()
        writer = speller.writer(mine, merged, "")
        reader = speller.reader(mine, merged, "")
        if wrapped:
            writer = {**_WRAPPER, "fields": [{"name": WRAPPED, "type": writer}]}
            kept = [] if reader is None else [_member(WRAPPED, reader)]
            reader = {**_WRAPPER, "fields": kept}
        key = json.dumps(writer), json.dumps(reader)
        found = alike.get(key)
        ids = (number,) if found is None else (*found.ids, number)
        alike[key] = Reading(ids, writer, reader, speller.narrower)
    return tuple(alike.values())


def _record(path: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", **_named(path), "fields": fields}


def _named(path: str) -> dict[str, str]:
    return {"name": "it", "namespace": f"{_NAMESPACE}.{path}" if path else _NAMESPACE}


def _member(name: str, kind: AvroSchema) -> dict[str, Any]:
    return {"name": name, "type": _or_null(kind), "default": None}


class _Speller:
    """Creates the Avro JSON of a writer schema and its reader schema."""

    def __init__(self) -> None:
        self.narrower = False
        self._written: set[str] = set()

    def writer(self, mine: AvroType, merged: AvroType, path: str, name: str = "it") -> AvroSchema:
        """The writer schema, with types named by their column's path."""
        if merged.kind == "text":
            return self._original(mine.original)
        if mine.kind == "union":
            return self._writer_branches(mine.branches, merged, path)
        if merged.kind == "union":
            return self._writer_branches((mine,), merged, path)[0]
        if mine.kind == "record":
            fields = [
                {"name": field, "type": self.writer(inner, merged.fields[field], _at(path, field))}
                for field, inner in mine.fields.items()
            ]
            return {**_record(path, fields), "name": name}
        if mine.item is not None and merged.item is not None:
            inner = self.writer(mine.item, merged.item, _at(path, "item__"))
            return _collection(mine.kind, inner)
        return _leaf(mine, path, name)

    def _writer_branches(
        self, branches: Sequence[AvroType], merged: AvroType, path: str
    ) -> list[AvroSchema]:
        members = list(column_types.members(merged))
        spelled: list[AvroSchema] = []
        for branch, place in zip(branches, column_types.places(branches, merged), strict=True):
            if branch.kind == "null":
                spelled.append("null")
            elif place is None:
                spelled.append(self.writer(branch, merged, path))
            else:
                member, wanted = members[place]
                inner = _at(path, f"{member}__")
                spelled.append(self.writer(branch, wanted, inner, member))
        return spelled

    def reader(
        self, mine: AvroType | None, merged: AvroType, path: str, name: str = "it"
    ) -> AvroSchema | None:
        """The reader schema, without null; None for types without a column, or JSON text."""
        if merged.kind in ("null", "text"):
            return None
        own = _some(mine)
        if merged.kind == "union":
            places = column_types.places(own, merged)
            return [
                self.reader(
                    own[places.index(at)] if at in places else None,
                    wanted,
                    _at(path, f"{member}__"),
                    member,
                )
                for at, (member, wanted) in enumerate(column_types.members(merged))
            ]
        one = own[0] if len(own) == 1 else None
        if merged.kind == "record":
            return {**_record(path, self._reader_fields(one, merged, path)), "name": name}
        if merged.item is not None:
            item = None if one is None else one.item
            inner = self.reader(item, merged.item, _at(path, "item__"))
            return _collection(merged.kind, _or_null(inner))
        return self._reader_leaf(one, merged, path, name)

    def _reader_fields(
        self, mine: AvroType | None, merged: AvroType, path: str
    ) -> list[dict[str, Any]]:
        have = {} if mine is None else mine.fields
        spelled = {
            field: self.reader(have.get(field), inner, _at(path, field))
            for field, inner in merged.fields.items()
        }
        fields = [
            {"name": field, "type": _or_null(kind), "default": None}
            for field, kind in spelled.items()
            if kind is not None
        ]
        if not fields and path:
            return [_member(column_types.EMPTY, "boolean")]
        return fields

    def _reader_leaf(
        self, mine: AvroType | None, merged: AvroType, path: str, name: str
    ) -> AvroSchema:
        if mine is None:
            return _leaf(merged, path, name)
        if column_types.column_type(mine) == column_types.column_type(merged):
            return _leaf(mine, path, name)
        if not merged.logical:
            return _leaf(merged, path, name)
        if mine.kind == "fixed" and dict(merged.logical)["precision"] > digits(mine.size):
            self.narrower = True
            return _leaf(mine, path, name)
        return _leaf(replace(mine, logical=merged.logical), path, name)

    def _original(self, part: AvroSchema) -> AvroSchema:
        """A self-contained schema; types that are already defined are only referenced."""
        if isinstance(part, list):
            return [self._original(branch) for branch in part]
        if not isinstance(part, dict):
            return part if part in PRIMITIVES else f"{OWN}{_valid(part)}"
        inner: dict[str, Any] = {}
        if "name" in part:
            inner["name"] = f"{OWN}{_valid(part['name'])}"
            if part["name"] in self._written:
                return inner["name"]
            self._written.add(part["name"])
        inner |= {key: self._original(part[key]) for key in ("items", "values") if key in part}
        if "fields" in part:
            inner["fields"] = [
                {"name": f["name"], "type": self._original(f["type"])} for f in part["fields"]
            ]
        return {**part, **inner}


def _some(kind: AvroType | None) -> list[AvroType]:
    """The non-null types of a union, or the type itself."""
    every = () if kind is None else kind.branches if kind.kind == "union" else (kind,)
    return [branch for branch in every if branch.kind != "null"]


def _valid(full: str) -> str:
    """A full name that all Avro implementations accept; most are unchanged."""
    parts = (re.sub(r"\W", "_", part) for part in full.split("."))
    return ".".join(part if re.match(r"[^\W\d]", part) else f"_{part}" for part in parts)


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _or_null(kind: AvroSchema) -> AvroSchema:
    return ["null", *kind] if isinstance(kind, list) else ["null", kind]


def _collection(kind: str, inner: AvroSchema) -> dict[str, Any]:
    return {"type": kind, "items" if kind == "array" else "values": inner}


def _leaf(kind: AvroType, path: str, name: str) -> AvroSchema:
    logical = dict(kind.logical)
    if kind.kind == "enum":
        return {"type": "enum", **_named(path), "name": name, "symbols": list(kind.symbols)}
    if kind.kind == "fixed":
        return {"type": "fixed", **_named(path), "name": name, "size": kind.size, **logical}
    return {"type": kind.kind, **logical} if logical else kind.kind
