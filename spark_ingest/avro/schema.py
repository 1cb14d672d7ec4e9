"""Parses Avro schemas: resolves names, and finds recursive types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

AvroSchema = Any
"""A parsed Avro schema: the JSON of it (dict, list or str)."""

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAME = re.compile(r"[^\W\d]\w*")
# Spark's and Iceberg's limit.
MAX_PRECISION = 38
# Logical types that determine the column type, with their underlying types; others are ignored,
# as Avro requires.
_LOGICAL = {
    "decimal": ("bytes", "fixed"),
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
}
_TEMPORAL = re.compile(
    r"(local-)?time(stamp)?-(milli|micro|nano)s$"
    r"|io\.debezium\.time\.|org\.apache\.kafka\.connect\.data\.(Date|Time)"
)


class IncompatibleSchema(Exception):
    """A writer schema that is incompatible with bronze; the message has the path and reason."""


@dataclass(frozen=True)
class AvroType:
    """A type with resolved names.

    Attributes:
        kind: A primitive, or record, enum, fixed, array, map, union; ``text`` for a recursive
            type.
        name: Full name of a record, enum or fixed.
        logical: ``logicalType`` with its parameters, if it determines the column type.
        unit: The unit of a plain number, if the schema has one.
        fields: The fields of a record.
        item: The item type of an array or map.
        symbols: The symbols of an enum.
        size: The size of a fixed, in bytes.
        branches: The branches of a union, including null, in the writer's order.
        held: The members of a union that the table has.
        types: For a union of a topic's subjects, the full names of the declared records,
            registered or not.
        original: The self-contained schema of a column's type.
        docs: The docs of a record's fields, if any.
    """

    kind: str
    name: str = ""
    logical: tuple[tuple[str, Any], ...] = ()
    unit: str = ""
    fields: Mapping[str, AvroType] = field(default_factory=dict)
    item: AvroType | None = None
    symbols: tuple[str, ...] = ()
    size: int = 0
    branches: tuple[AvroType, ...] = ()
    held: frozenset[str] = field(default=frozenset(), compare=False)
    types: tuple[str, ...] = field(default=(), compare=False)
    original: AvroSchema = field(default=None, compare=False)
    docs: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        logical = dict(self.logical)
        if logical:
            detail = f"({logical['precision']},{logical['scale']})" if "scale" in logical else ""
            return f"{logical['logicalType']}{detail} on {self.kind}"
        if self.kind == "union":
            return f"a union of {', '.join(str(branch) for branch in self.branches)}"
        if self.unit:
            return f"{self.kind} of {self.unit}"
        if self.kind == "text":
            return "a recursive type"
        return f"{self.kind} {self.short_name}".strip()


def parse(schema: AvroSchema, references: Sequence[AvroSchema] = (), path: str = "") -> AvroType:
    """Parse a schema.

    ``schema`` is parsed JSON; ``references`` are registered schemas whose types it uses, each
    after those that it uses; ``path`` is for messages.

    Raises:
        IncompatibleSchema: It is not valid Avro, or uses an undefined type.
    """
    definitions: dict[str, Any] = {}
    try:
        for each in references:
            _plain(each, "", definitions)
        root = _plain(schema, "", definitions)
        return _Reader(definitions).root(root, path)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise IncompatibleSchema(f"not a valid Avro schema ({error})") from error


def _plain(schema: AvroSchema, namespace: str, definitions: dict[str, Any]) -> Any:
    """The schema with each named type as its full name; ``definitions`` collects these."""
    if isinstance(schema, list):
        return [_plain(branch, namespace, definitions) for branch in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            return schema
        spaced = f"{namespace}.{schema}" if namespace and "." not in schema else schema
        return spaced if spaced in definitions or schema not in definitions else schema
    kind = schema["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(schema, namespace, definitions)
    if kind == "array":
        return {"type": kind, "items": _plain(schema["items"], namespace, definitions)}
    if kind == "map":
        return {"type": kind, "values": _plain(schema["values"], namespace, definitions)}
    if isinstance(kind, str) and kind in PRIMITIVES:
        # Normalize null, so that it is found in unions.
        return kind if kind == "null" else dict(schema)
    return _plain(kind, namespace, definitions)


def _definition(schema: dict[str, Any], namespace: str, definitions: dict[str, Any]) -> str:
    name: str = schema["name"]
    space = schema.get("namespace", namespace) or ""
    if "." in name:
        space = name.rpartition(".")[0]
    full = f"{space}.{name}" if space and "." not in name else name
    definition = {
        key: schema[key]
        for key in ("symbols", "size", "logicalType", "precision", "scale")
        if key in schema
    }
    definition["type"] = "record" if schema["type"] == "error" else schema["type"]
    definition["name"] = full
    # Java's Avro, which most producers use, does not validate namespaces.
    _valid(full.rpartition(".")[2])
    known = definitions.get(full)
    # Its own fields may already refer to it.
    definitions[full] = definition
    if definition["type"] == "record":
        definition["fields"] = [
            {
                "name": _valid(f["name"]),
                "type": _plain(f["type"], space, definitions),
                **({"doc": f["doc"]} if isinstance(f.get("doc"), str) else {}),
            }
            for f in schema["fields"]
        ]
        _refuse_twice([f["name"] for f in definition["fields"]], full)
    for symbol in definition.get("symbols", ()):
        _valid(symbol)
    _refuse_twice(definition.get("symbols", ()), full)
    if known is not None and _without_docs(known) != _without_docs(definition):
        raise IncompatibleSchema(
            f"{full} has two different definitions, so references to it are ambiguous; "
            "register one schema that has both with different names"
        )
    return full


def _without_docs(definition: Mapping[str, Any]) -> Any:
    """A definition without its docs."""
    fields = [(f["name"], f["type"]) for f in definition.get("fields", ())]
    return {**definition, "fields": fields}


def _valid(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise IncompatibleSchema(f"{name!r} is not a name in Avro")
    return name


def _refuse_twice(names: Sequence[str], full: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise IncompatibleSchema(f"{full}: duplicate {name}")


class _Reader:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._reached: dict[str, frozenset[str]] = {}

    def root(self, node: Any, path: str) -> AvroType:
        """The top-level type: the fields of a record are checked for recursion one by one."""
        if isinstance(node, list) and len([b for b in node if b != "null"]) == 1:
            branches = tuple(self.root(branch, path) for branch in node)
            return AvroType("union", branches=branches)
        definition = self._definitions.get(node) if isinstance(node, str) else None
        if definition is None or definition["type"] != "record":
            return self._whole(node, path)
        return self._record(definition, path)

    def _record(self, definition: dict[str, Any], path: str) -> AvroType:
        fields = {
            f["name"]: self._whole(f["type"], _inside(path, f["name"]))
            for f in definition["fields"]
        }
        docs = {
            f["name"]: " ".join(filter(None, (f.get("doc"), _note(f["type"]))))
            for f in definition["fields"]
            if f.get("doc") or _note(f["type"])
        }
        return AvroType("record", definition["name"], fields=fields, docs=docs)

    def _whole(self, node: Any, path: str) -> AvroType:
        original = standalone(node, self._definitions)
        if any(name in self._names(name) for name in self._within(node)):
            return AvroType("text", original=original)
        return replace(self._read(node, path), original=original)

    def _within(self, node: Any) -> frozenset[str]:
        """Full names that a type uses, directly or not."""
        if isinstance(node, list):
            return frozenset().union(*(self._within(branch) for branch in node))
        if isinstance(node, dict):
            inner = node.get("items", node.get("values"))
            return frozenset() if inner is None else self._within(inner)
        if node in PRIMITIVES or node not in self._definitions:
            return frozenset()
        return frozenset({node}) | self._names(node)

    def _names(self, full: str) -> frozenset[str]:
        """Full names that a named type uses, including itself only if it is recursive."""
        if full not in self._reached:
            found: set[str] = set()
            todo = [f["type"] for f in self._definitions[full].get("fields", [])]
            while todo:
                node = todo.pop()
                if isinstance(node, list):
                    todo += node
                elif isinstance(node, dict):
                    todo += [node[key] for key in ("items", "values") if key in node]
                elif node in self._definitions and node not in found:
                    found.add(node)
                    todo += [f["type"] for f in self._definitions[node].get("fields", [])]
            self._reached[full] = frozenset(found)
        return self._reached[full]

    def _read(self, node: Any, path: str) -> AvroType:
        if isinstance(node, list):
            return self._union(node, path)
        if isinstance(node, str) and node in PRIMITIVES:
            return AvroType(node)
        if isinstance(node, dict) and node["type"] == "array":
            return AvroType("array", item=self._read(node["items"], f"{path}[]"))
        if isinstance(node, dict) and node["type"] == "map":
            return AvroType("map", item=self._read(node["values"], f"{path}{{}}"))
        if isinstance(node, dict):
            return AvroType(node["type"], logical=_logical(node), unit=_unit(node))
        definition = self._definitions.get(node)
        if definition is None:
            raise IncompatibleSchema(f"{path or 'value'}: the type {node} is not defined")
        if definition["type"] == "enum":
            return AvroType("enum", name=node, symbols=tuple(definition["symbols"]))
        if definition["type"] == "fixed":
            logical = _logical(definition)
            return AvroType("fixed", node, logical, size=definition["size"])
        fields = {
            f["name"]: self._read(f["type"], _inside(path, f["name"])) for f in definition["fields"]
        }
        return AvroType("record", name=node, fields=fields)

    def _union(self, node: list[Any], path: str) -> AvroType:
        return AvroType("union", branches=tuple(self._read(b, path) for b in node))


def standalone(node: Any, definitions: Mapping[str, Any]) -> AvroSchema:
    """A resolved node as a self-contained schema, with the definitions of all named types."""
    written: set[str] = set()

    def spell(part: Any) -> Any:
        if isinstance(part, list):
            return [spell(branch) for branch in part]
        if isinstance(part, dict):
            inner = {k: spell(part[k]) for k in ("items", "values") if k in part}
            return {**part, **inner}
        if part in PRIMITIVES or part in written or part not in definitions:
            return part
        written.add(part)
        definition = dict(definitions[part])
        if definition["type"] == "record":
            definition["fields"] = [
                {"name": f["name"], "type": spell(f["type"])} for f in definition["fields"]
            ]
        return definition

    return spell(node)


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _logical(schema: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    logical = schema.get("logicalType")
    if schema["type"] not in _LOGICAL.get(str(logical), ()):
        return ()
    if logical != "decimal":
        return (("logicalType", logical),)
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    # Avro: a logical type with invalid parameters is ignored.
    if not isinstance(precision, int) or not isinstance(scale, int):
        return ()
    if precision < 1 or not 0 <= scale <= MAX_PRECISION:
        return ()
    # PostgreSQL has numeric(3,5), three digits after two zeros, which Avro does not allow.
    precision = max(precision, scale)
    if schema["type"] == "fixed" and precision > digits(schema["size"]):
        return ()
    # Kafka Connect uses precision 64 if the database has none: check the values instead.
    precision = min(precision, MAX_PRECISION)
    return (("logicalType", logical), ("precision", precision), ("scale", scale))


def _unit(schema: dict[str, Any]) -> str:
    """The unit of a temporal type that is a plain number in bronze, such as milliseconds.

    Avro's logical type, or the name of the type in Debezium and Kafka Connect (debezium.io,
    "Temporal types").
    """
    if schema["type"] not in ("int", "long") or _logical(schema):
        return ""
    names = str(schema.get("logicalType", "")), str(schema.get("connect.name", ""))
    return next((name for name in names if _TEMPORAL.match(name)), "")


def _note(node: Any) -> str:
    """A note for a decimal whose precision the column's type does not have."""
    for branch in node if isinstance(node, list) else [node]:
        if not isinstance(branch, dict) or branch.get("logicalType") != "decimal":
            continue
        precision, scale = branch.get("precision"), branch.get("scale", 0)
        text = f"decimal({precision},{scale}) in the schema"
        logical = dict(_logical(branch))
        if not logical:
            return f"{text}: the bytes of its unscaled number, big-endian."
        if logical["precision"] < precision:
            return f"{text}: a value of more than {MAX_PRECISION} digits is quarantined."
    return ""


def digits(size: int) -> int:
    """Decimal digits that always fit a signed number of ``size`` bytes."""
    return len(str(2 ** (8 * size - 1) - 1)) - 1


@dataclass(frozen=True)
class WriterSchema:
    """A registered schema.

    Attributes:
        id: The id in a record's framing.
        schema: Its Avro schema as parsed JSON; None if it cannot be used.
        references: Schemas that it refers to, each after those that it refers to itself.
        problem: Why it cannot be used.
    """

    id: int
    schema: AvroSchema | None
    references: tuple[AvroSchema, ...] = ()
    problem: str = ""
