"""Avro schemas of one topic put together: the one reader schema that all its writers fit.

Bronze invents nothing and drops nothing: every field of every version is a column, absent
is null, and defaults, aliases and docs of the writers play no part. So the reader schema
is the union of the fields, each nullable with default null; a type grows only where
Iceberg can grow the column too (int to long, float to double, decimal precision).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_ingest.registry import AvroSchema, WriterSchema

_PRIMITIVES = frozenset(
    {"boolean", "int", "long", "float", "double", "bytes", "string"}
)
# Avro's promotions that an Iceberg column can follow.
_PROMOTIONS = {
    frozenset({"int", "long"}): "long",
    frozenset({"float", "double"}): "double",
}
# Meanings that Spark reads; another logical type leaves the plain type, as Avro demands.
_LOGICAL = frozenset(
    {
        "decimal",
        "date",
        "time-millis",
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
    }
)


# Spark's and Iceberg's limit.
_MAX_PRECISION = 38


class SchemaMisfit(Exception):
    """A writer schema that bronze cannot hold; the text says where and why."""


@dataclass(frozen=True)
class _Type:
    """A type without names to look up: what two versions are compared by.

    Attributes:
        kind: A primitive, or record, enum, fixed, array, map.
        name: Full name of an enum or fixed, plain name of a record.
        logical: Logical type with its parameters, as sorted pairs.
        fields: Of a record.
        item: Of an array or map.
        symbols: Of an enum.
        size: Of a fixed, in bytes.
    """

    kind: str
    name: str = ""
    logical: tuple[tuple[str, Any], ...] = ()
    fields: dict[str, _Type] = field(default_factory=dict)
    item: _Type | None = None
    symbols: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True)
class TopicSchema:
    """What a topic's writers have in common.

    Attributes:
        reader: The reader schema, a nullable-field record (or any other type for a topic
            whose values are not records); None when there is no usable writer.
        writers: Writer schema by id, those that fit the reader.
        misfits: Reason by id, those that do not.
    """

    reader: AvroSchema | None
    writers: dict[int, AvroSchema]
    misfits: dict[int, str]


def combine(writers: Sequence[WriterSchema]) -> TopicSchema:
    """Put the versions of a topic together, in the order given.

    A version that does not fit those before it is a misfit: its records go to quarantine
    with the reason, and the others go on.
    """
    merged: _Type | None = None
    fitting: dict[int, AvroSchema] = {}
    misfits: dict[int, str] = {}
    for writer in writers:
        try:
            if writer.schema is None:
                raise SchemaMisfit("not an Avro schema that stands by itself")
            if isinstance(writer.schema, list):
                raise SchemaMisfit("value: a union at the top")
            mine = _resolve(writer.schema, {}, "", "")
            merged = mine if merged is None else _merge(merged, mine, "")
            fitting[writer.id] = writer.schema
        except SchemaMisfit as misfit:
            misfits[writer.id] = str(misfit)
    reader = None if merged is None else _emit(merged, "", {}, _symbols(merged, {}))
    return TopicSchema(reader, fitting, misfits)


def _resolve(
    schema: AvroSchema, names: dict[str, _Type], namespace: str, path: str
) -> _Type:
    """Read a schema, its references followed; ``names`` collects the named types met."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) != 1:
            raise SchemaMisfit(f"{path or 'value'}: a union of several types")
        return _resolve(branches[0], names, namespace, path)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _Type(schema)
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        found: _Type | None = names.get(full, names.get(schema))
        if found is None:
            raise SchemaMisfit(
                f"{path or 'value'}: type {schema} refers to itself or nothing"
            )
        return found
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _resolve(kind, names, namespace, path)
    logical = _logical(schema, path)
    if kind in _PRIMITIVES:
        return _Type(kind, logical=logical)
    if kind == "array":
        return _Type(
            kind, item=_resolve(schema["items"], names, namespace, f"{path}[]")
        )
    if kind == "map":
        return _Type(
            kind, item=_resolve(schema["values"], names, namespace, f"{path}{{}}")
        )
    if kind not in ("record", "enum", "fixed"):
        return _resolve(kind, names, namespace, path)
    name, space = _full_name(schema, namespace)
    full = f"{space}.{name}" if space else name
    if kind == "enum":
        resolved = _Type(kind, name=full, symbols=tuple(schema["symbols"]))
    elif kind == "fixed":
        resolved = _Type(kind, name=full, logical=logical, size=schema["size"])
    else:
        fields: dict[str, _Type] = {}
        for member in schema["fields"]:
            where = f"{path}.{member['name']}" if path else member["name"]
            fields[member["name"]] = _resolve(member["type"], names, space, where)
        _refuse_like_names(fields, path)
        resolved = _Type(kind, name=name, fields=fields)
    names[full] = resolved
    return resolved


def _full_name(schema: dict[str, Any], namespace: str) -> tuple[str, str]:
    name: str = schema["name"]
    if "." in name:
        space, _, short = name.rpartition(".")
        return short, space
    return name, schema.get("namespace", namespace)


def _logical(schema: dict[str, Any], path: str) -> tuple[tuple[str, Any], ...]:
    logical = schema.get("logicalType")
    if logical not in _LOGICAL:
        return ()
    if logical == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        # Avro: a logical type with parameters that make no sense is ignored.
        if not isinstance(precision, int) or not isinstance(scale, int):
            return ()
        if precision < 1 or not 0 <= scale <= precision:
            return ()
        if precision > _MAX_PRECISION:
            raise SchemaMisfit(
                f"{path or 'value'}: decimal({precision},{scale}), of more than "
                f"{_MAX_PRECISION} digits"
            )
        return (("logicalType", logical), ("precision", precision), ("scale", scale))
    return (("logicalType", logical),)


def _merge(old: _Type, new: _Type, path: str) -> _Type:
    where = path or "value"
    if old.kind != new.kind:
        grown = _PROMOTIONS.get(frozenset({old.kind, new.kind}))
        if grown is None or old.logical or new.logical:
            raise SchemaMisfit(
                f"{where}: {_say(new)} where earlier versions have {_say(old)}"
            )
        return _Type(grown)
    if old.kind == "record":
        fields = dict(old.fields)
        for name, kind in new.fields.items():
            inner = f"{path}.{name}" if path else name
            fields[name] = _merge(fields[name], kind, inner) if name in fields else kind
        _refuse_like_names(fields, path)
        return replace(old, fields=fields)
    if old.item is not None and new.item is not None:
        return replace(old, item=_merge(old.item, new.item, f"{path}[]"))
    # Avro's reader insists on the names of enums and fixed, and on a fixed's size.
    if (old.name, old.size) != (new.name, new.size):
        raise SchemaMisfit(
            f"{where}: {_say(new)} where earlier versions have {_say(old)}"
        )
    if old.kind == "enum":
        more = tuple(symbol for symbol in new.symbols if symbol not in old.symbols)
        return replace(old, symbols=old.symbols + more)
    if old.logical != new.logical:
        a, b = dict(old.logical), dict(new.logical)
        if {a.get("logicalType"), b.get("logicalType")} != {"decimal"} or a[
            "scale"
        ] != b["scale"]:
            raise SchemaMisfit(
                f"{where}: {_say(new)} where earlier versions have {_say(old)}"
            )
        return old if a["precision"] >= b["precision"] else new
    return old


def _refuse_like_names(fields: Iterable[str], path: str) -> None:
    """Columns have no case: two fields that differ in nothing else cannot both be one."""
    seen: dict[str, str] = {}
    for name in fields:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise SchemaMisfit(
                f"{path or 'value'}: fields {other} and {name} differ in case alone"
            )


def _say(kind: _Type) -> str:
    logical = dict(kind.logical)
    if not logical:
        return f"{kind.kind} {kind.name}".strip()
    detail = (
        f"({logical['precision']},{logical['scale']})" if "scale" in logical else ""
    )
    return f"{logical['logicalType']}{detail} on {kind.kind}"


def _symbols(
    kind: _Type, found: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """All symbols of each enum, by its full name, wherever in the schema it stands."""
    if kind.kind == "enum":
        known = found.get(kind.name, ())
        found[kind.name] = known + tuple(s for s in kind.symbols if s not in known)
    for inner in (*kind.fields.values(), *([kind.item] if kind.item else [])):
        _symbols(inner, found)
    return found


def _emit(
    kind: _Type,
    path: str,
    written: dict[str, None],
    symbols: dict[str, tuple[str, ...]],
) -> AvroSchema:
    """The Avro JSON of a merged type; ``written`` holds the enums and fixed defined so far."""
    logical = dict(kind.logical)
    if kind.kind in _PRIMITIVES:
        return {"type": kind.kind, **logical} if logical else kind.kind
    if kind.kind in ("array", "map") and kind.item is not None:
        inner = _emit(kind.item, f"{path}_item", written, symbols)
        return {
            "type": kind.kind,
            "items" if kind.kind == "array" else "values": ["null", inner],
        }
    if kind.kind in ("enum", "fixed"):
        if kind.name in written:
            return kind.name
        written[kind.name] = None
        space, _, name = kind.name.rpartition(".")
        head = {"type": kind.kind, "name": name, "namespace": space}
        if kind.kind == "enum":
            return {**head, "symbols": list(symbols[kind.name])}
        return {**head, "size": kind.size, **logical}
    return {
        "type": "record",
        "name": kind.name,
        # The same record may stand in two places and differ there after merging; Avro's
        # reader finds a nullable record by its structure whatever its namespace.
        "namespace": f"bronze{path}",
        "fields": [
            {
                "name": name,
                "type": ["null", _emit(inner, f"{path}.{name}", written, symbols)],
                "default": None,
            }
            for name, inner in kind.fields.items()
        ],
    }
