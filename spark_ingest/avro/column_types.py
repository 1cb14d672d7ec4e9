"""The column that an Avro type becomes, and what one column can hold."""

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

# Parquet has no struct without a member: this one, always null, stands in for it.
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
    """The type of the column for a settled type; None for null, which needs none."""
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
    """The columns for the fields of a record, without those that are null in all versions."""
    typed = ((name, column_type(inner)) for name, inner in kind.fields.items())
    return StructType([StructField(name, each) for name, each in typed if each is not None])


def members(union: AvroType) -> Iterator[tuple[str, AvroType]]:
    """Member name and type of a union's branches.

    A member has its type's name without the namespace, in lower case; with it where an
    earlier branch took the name, so that a branch added later changes no other's name. What the
    table has with a namespace keeps it, whichever of the two comes first now.

    Where subjects make the union, the first type declared of a name has it, registered or not,
    and all others have their namespace: the names follow from the declaration alone, since
    types are registered and met in any order.
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
            # Of a type without a namespace.
            name += "_"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name, branch


def places(branches: Sequence[AvroType], union: AvroType) -> list[int | None]:
    """Which branch of a union of several writers each branch of one of them is; None for a new one.

    The one of its name; else the only one that has its name in another namespace, and is none
    of the writer's others: a namespace that changes makes no other columns. Where subjects make
    the union, another namespace is another type.
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
    """In a union a number has one member, however wide: its name does not change later."""
    if kind.kind in ("int", "float") and not kind.logical:
        return replace(kind, kind={"int": "long", "float": "double"}[kind.kind])
    return kind


def wider(old: AvroType, new: AvroType) -> AvroType | None:
    """The one of two types, neither of them of several parts, whose column holds both.

    None holds numbers of two units, of which nobody can say later what one counts.
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
    """Whether a column of one plain type holds each value of another, unchanged."""
    if isinstance(column, DecimalType) and isinstance(value, DecimalType):
        return column.scale == value.scale and column.precision >= value.precision
    grown = (IntegerType, LongType), (FloatType, DoubleType)
    return column == value or (type(value), type(column)) in grown


def clash(held: DataType, wanted: DataType, path: str) -> str | None:
    """Why a table's column cannot be grown to a wanted type; None where it can.

    ``path`` is the column's name, for the message.
    """
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        have = {field.name.lower(): field for field in held.fields}
        for field in wanted.fields:
            inner = f"{path}.{field.name}" if path else field.name
            known = have.get(field.name.lower())
            if known is not None and known.name != field.name:
                return f"{inner}: the table has {known.name}, and columns have no case"
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
    """Whether a column holds a wanted type as it is, without being grown."""
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
    # A type of nothing but null has no column; settled types hold none further in.
    return BooleanType() if kind is None else kind
