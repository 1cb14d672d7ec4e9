"""Maps Avro types to column types, and compares column types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_ingest.avro.schema import AvroType

# Parquet has no empty struct: it gets this field, which is always null.
EMPTY = "_empty"
_PLAIN: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
    "fixed": BinaryType(),
    "text": StringType(),
}
_LOGICAL: dict[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}


def column_type(kind: AvroType) -> DataType | None:
    """The column type of a normalized type; None for null, which has no column."""
    if kind.kind == "null":
        return None
    if kind.kind == "record":
        inside = record_fields(kind)
        return inside if inside.fields else StructType([_empty()])
    if kind.kind == "union":
        return StructType([StructField(name, _some(column_type(b))) for name, b in members(kind)])
    if kind.item is not None:
        item = _some(column_type(kind.item))
        return ArrayType(item) if kind.kind == "array" else MapType(StringType(), item)
    logical = dict(kind.logical)
    if logical.get("logicalType") == "decimal":
        return DecimalType(logical["precision"], logical["scale"])
    return _LOGICAL.get(logical.get("logicalType", ""), _PLAIN[kind.kind])


def record_fields(kind: AvroType) -> StructType:
    """The columns of a record's fields, without those that are null in all versions."""
    typed = ((name, column_type(inner)) for name, inner in kind.fields.items())
    return StructType([StructField(name, each) for name, each in typed if each is not None])


def members(union: AvroType) -> Iterator[tuple[str, AvroType]]:
    """Member name and type of a union's branches.

    A member has its type's name without the namespace, in lower case; with the namespace if an
    earlier branch has the name, so that a new branch does not change other names. A member that
    the table has with a namespace keeps it.

    In a union of a topic's subjects, the first declared type of a name has it, registered or not,
    and all others have their namespace: names depend on the declaration alone, because types are
    registered and read in any order.
    """
    taken: set[str] = set()
    owners: dict[str, str] = {}
    for full in union.types:
        owners.setdefault(full.rpartition(".")[2].lower(), full)
    for branch in union.branches:
        name = (branch.short_name or branch.kind).lower()
        whole = re.sub(r"\W", "_", branch.name).lower()
        is_others = bool(union.types and branch.name) and owners.get(name) != branch.name
        if name in taken or whole in union.held or is_others:
            name = whole
        if is_others and name in owners:
            # The type has no namespace.
            name += "_"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name, branch


def places(branches: Sequence[AvroType], union: AvroType) -> list[int | None]:
    """Match a writer's branches to those of the merged union; None for a new branch.

    By full name; otherwise by short name if that is unique and not matched otherwise, so that a
    changed namespace adds no columns. In a union of a topic's subjects, another namespace is
    another type.
    """
    wide = [widest(branch) for branch in branches]
    names = [(known.kind, known.name) for known in union.branches]
    found = [
        names.index((branch.kind, branch.name)) if (branch.kind, branch.name) in names else None
        for branch in wide
    ]
    if union.types:
        return found
    for at, branch in enumerate(wide):
        alike = [
            place
            for place, known in enumerate(union.branches)
            if branch.name
            and (known.kind, known.short_name) == (branch.kind, branch.short_name)
            and place not in found
        ]
        if found[at] is None and len(alike) == 1:
            found[at] = alike[0]
    return found


def widest(kind: AvroType) -> AvroType:
    """Widen an int or float in a union, so that its member's name does not change later."""
    if kind.kind in ("int", "float") and not kind.logical:
        return replace(kind, kind={"int": "long", "float": "double"}[kind.kind])
    return kind


def wider(old: AvroType, new: AvroType) -> AvroType | None:
    """The one of two scalar types whose column fits both; None if there is none.

    Numbers of different units do not fit: the unit of a value would be unknown.
    """
    if old.unit != new.unit:
        return None
    before, after = column_type(old), column_type(new)
    if before is None or after is None or {old.kind, new.kind} & {"union", "text"}:
        return None
    if holds(before, after):
        return old
    return new if holds(after, before) else None


def holds(column: DataType, value: DataType) -> bool:
    """Whether a column of a scalar type fits each value of another type, unchanged."""
    if isinstance(column, DecimalType) and isinstance(value, DecimalType):
        return column.scale == value.scale and column.precision >= value.precision
    promotions = (IntegerType, LongType), (FloatType, DoubleType)
    return column == value or (type(value), type(column)) in promotions


def clash(held: DataType, wanted: DataType, path: str) -> str | None:
    """Why a table's column cannot be promoted to a type; None if it can.

    ``path`` is the column's name, for the message.
    """
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        have = {field.name.lower(): field for field in held.fields}
        for field in wanted.fields:
            inner = f"{path}.{field.name}" if path else field.name
            known = have.get(field.name.lower())
            if known is not None and known.name != field.name:
                return f"{inner}: the table has {known.name}, and columns are case-insensitive"
            found = known and clash(known.dataType, field.dataType, inner)
            if found:
                return found
        return None
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        return clash(held.elementType, wanted.elementType, f"{path}[]")
    if isinstance(held, MapType) and isinstance(wanted, MapType):
        return clash(held.valueType, wanted.valueType, f"{path}{{}}")
    if holds(held, wanted) or holds(wanted, held):
        return None
    return f"{path or 'value'}: {wanted.simpleString()} where the table has {held.simpleString()}"


def covers(held: DataType | None, wanted: DataType) -> bool:
    """Whether a column fits a type without schema evolution."""
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        have = {field.name: field.dataType for field in held.fields}
        return all(covers(have.get(f.name), f.dataType) for f in wanted.fields)
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        return covers(held.elementType, wanted.elementType)
    if isinstance(held, MapType) and isinstance(wanted, MapType):
        return covers(held.valueType, wanted.valueType)
    return held is not None and holds(held, wanted)


def _empty() -> StructField:
    return StructField(EMPTY, BooleanType())


def _some(kind: DataType | None) -> DataType:
    # Normalized types contain null only at the top.
    return BooleanType() if kind is None else kind
