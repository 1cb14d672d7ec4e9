"""Merges the Avro schemas of one topic to the columns that fit all writer schemas.

Every field of every version is a column, and a missing field is null; defaults, aliases and docs
of the writer schemas do not matter. Two versions of a field are compatible if one column fits
both; a column is widened only by Iceberg's promotions (int to long, float to double, decimal
precision).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from spark_ingest.avro import column_types
from spark_ingest.avro.framing import CONFLUENT, Framing, Part
from spark_ingest.avro.reader_schemas import WRAPPED, Reading, readings
from spark_ingest.avro.schema import AvroType, IncompatibleSchema, WriterSchema, parse

# The complete text, in addition to the columns of JSON, which may not have all of it.
JSON_TEXT = "_json"
_NULL = AvroType("null")
_OF_TYPES = "The record, in the member named after its type; the other members are null."
Problem = Callable[[Reading], str | None]
"""Returns why the decoder rejects a schema; None if it accepts it."""


@dataclass(frozen=True)
class TopicSchema:
    """The merged schemas of a topic.

    Attributes:
        framing: How a record identifies its schema.
        readings: How to read the compatible schemas; empty without a usable schema.
        incompatible: Reason by id of incompatible schemas.
        columns: The columns of the value, one named ``value`` if it is not a record.
        texts: Names of columns with JSON text, for recursive types.
        is_record: Whether the values are records (or null).
        wrapped: Whether the readings have the value in a field ``value``.
        docs: The docs of the columns, from the newest schema.
        member: The only member of ``value``, if several types are declared but one is known: the
            readings have the type itself, because Spark reads a union of one type as the type.
    """

    framing: Framing
    readings: tuple[Reading, ...]
    incompatible: dict[int, str]
    columns: StructType
    texts: tuple[str, ...]
    is_record: bool
    wrapped: bool
    docs: dict[str, str]
    member: str | None = None

    @property
    def writers(self) -> tuple[int, ...]:
        """The ids of the compatible schemas."""
        return tuple(number for reading in self.readings for number in reading.ids)

    @property
    def usable(self) -> bool:
        """Whether there is a schema to decode anything with."""
        return bool(self.readings) or self.framing.format != "avro"

    @property
    def whole(self) -> DataType:
        """The type of the value as one column."""
        return self.columns if self.is_record else self.columns[WRAPPED].dataType


def combine(
    writers: Sequence[WriterSchema],
    held: DataType | None = None,
    reserved: Iterable[str] = (),
    framing: Framing = CONFLUENT,
    problem: Problem | None = None,
    part: Part = "value",
    types: Sequence[str] = (),
) -> TopicSchema:
    """Merge the versions of a topic, in the given order.

    A version that is incompatible with earlier versions, or with the table, is skipped: its
    records are quarantined with the reason.

    Args:
        held: The table's existing columns: a struct for a value with several columns, the type
            of the column for a key; None without a table.
        reserved: Names, in lower case, that no column may have: see :func:`apart`.
        problem: Checks each compatible version: one that the decoder rejects is incompatible.
        types: Full names of the declared record types, in order, if the value has a member per
            type.
    """
    merged = AvroType("union", types=tuple(types)) if types else _NULL
    fitting: dict[int, AvroType] = {}
    incompatible: dict[int, str] = {}
    docs: dict[str, str] = {}
    taken = set(reserved)
    for writer in writers:
        try:
            if writer.schema is None:
                raise IncompatibleSchema(writer.problem or "not an Avro schema")
            mine = apart(parse(writer.schema, writer.references), taken)
            settled = _settled(mine, "")
            if types:
                _refuse_text(settled)
            candidate = _merge(merged, settled, "")
            candidate = _beside(candidate, _held_of(candidate, held, part))
            _refuse_unlike(held, candidate)
            if problem is not None:
                _refuse_unreadable(mine, candidate, problem)
            merged = candidate
            fitting[writer.id] = mine
            docs |= {WRAPPED: _OF_TYPES} if types else _core(mine).docs
        except IncompatibleSchema as error:
            incompatible[writer.id] = str(error)
    if merged.kind == "union" and not merged.branches:
        merged = _NULL
    is_record = merged.kind == "record"
    wrapped = not is_record or any(w.kind != "record" for w in fitting.values())
    return TopicSchema(
        framing=framing,
        readings=readings(fitting, merged, wrapped),
        incompatible=incompatible,
        columns=_columns(merged) if fitting else StructType([]),
        texts=_texts(merged),
        is_record=is_record,
        wrapped=wrapped,
        docs=docs,
        member=_lone_member(merged),
    )


def declared(framing: Framing, shape: StructType) -> TopicSchema:
    """The schema of a topic with JSON, text or bytes, from its source's declaration.

    ``shape`` has the columns of JSON objects, or one named ``value``.
    """
    is_record = framing.format == "json"
    return TopicSchema(framing, (), {}, shape, (), is_record, not is_record, {})


def apart(kind: AvroType, reserved: Collection[str]) -> AvroType:
    """Rename top-level fields with the name of an ingest column: ``_key`` to ``field__key``.

    ``reserved`` has the names of these columns, in lower case.

    Raises:
        IncompatibleSchema: There is already a field with the new name.
    """
    if kind.kind == "union":
        if _core(kind) is kind:
            return kind
        branches = tuple(apart(branch, reserved) for branch in kind.branches)
        return replace(kind, branches=branches)

    def column(name: str) -> str:
        return f"field_{name}" if name.lower() in reserved else name

    docs = {column(name): text for name, text in kind.docs.items()}
    for name in kind.fields:
        other = column(name)
        if other == name:
            continue
        if other in kind.fields:
            raise IncompatibleSchema(
                f"field {name} has the name of an ingest column, and field {other} "
                "exists as well: the producer must rename one"
            )
        docs.setdefault(other, f"`{name}` in the schema.")
    fields = {column(name): inner for name, inner in kind.fields.items()}
    return replace(kind, fields=fields, docs=docs)


def _columns(merged: AvroType) -> StructType:
    if merged.kind == "record":
        return column_types.record_fields(merged)
    kind = column_types.column_type(merged)
    return StructType([] if kind is None else [StructField(WRAPPED, kind)])


def _texts(merged: AvroType) -> tuple[str, ...]:
    if merged.kind == "record":
        return tuple(n for n, kind in merged.fields.items() if kind.kind == "text")
    return (WRAPPED,) if merged.kind == "text" else ()


def _lone_member(merged: AvroType) -> str | None:
    if merged.kind != "union" or len(merged.branches) != 1:
        return None
    return next(name for name, _ in column_types.members(merged))


def _held_of(merged: AvroType, held: DataType | None, part: Part) -> DataType | None:
    """The table's type for a merged type: its columns for a record, else the one column."""
    if part == "key" or merged.kind == "record" or not isinstance(held, StructType):
        return held
    return next((field.dataType for field in held if field.name == WRAPPED), None)


def _refuse_text(kind: AvroType) -> None:
    """Refuse recursive types in a union of subjects: JSON text must be a column."""
    branches = kind.branches if kind.kind == "union" else (kind,)
    for branch in branches:
        for name, each in {"value": branch, **branch.fields}.items():
            if each.kind == "text":
                raise IncompatibleSchema(
                    f"{name}: a recursive type cannot share a topic with the types of other "
                    "subjects: use a separate topic"
                )


def _refuse_unlike(held: DataType | None, merged: AvroType) -> None:
    if held is None:
        return
    want: DataType | None = _columns(merged)
    if not isinstance(held, StructType):
        want = column_types.column_type(merged)
    clash = None if want is None else column_types.clash(held, want, "")
    if clash is not None:
        raise IncompatibleSchema(clash)


def _refuse_unreadable(mine: AvroType, merged: AvroType, problem: Problem) -> None:
    for reading in readings({0: mine}, merged, wrapped=True):
        why = problem(reading)
        if why is not None:
            raise IncompatibleSchema(f"it cannot be read: {why}")


def _settled(kind: AvroType, path: str) -> AvroType:
    """Normalize a type for a column: without null, and a union of one type as that type."""
    if kind.kind == "record":
        fields = {
            name: _settled(inner, f"{path}.{name}" if path else name)
            for name, inner in kind.fields.items()
        }
        _refuse_like_names(fields, path)
        return replace(kind, fields=fields)
    if kind.item is not None:
        mark = "[]" if kind.kind == "array" else "{}"
        item = _settled(kind.item, f"{path}{mark}")
        if item.kind == "null":
            raise IncompatibleSchema(f"{path or 'value'}: {kind.kind} of null only")
        return replace(kind, item=item)
    if kind.kind != "union":
        return kind
    several = [b for b in kind.branches if b.kind != "null"]
    if len(several) < 2:
        return _settled(several[0], path) if several else _NULL
    united = AvroType("union")
    for branch in several:
        wide = column_types.widest(_settled(branch, path))
        names = [(known.kind, known.name) for known in united.branches]
        same = (wide.kind, wide.name)
        at = names.index(same) if same in names else None
        united = _with_branch(united, at, wide, path)
    return united.branches[0] if len(united.branches) == 1 else united


def _merge(old: AvroType, new: AvroType, path: str) -> AvroType:
    """Merge two normalized types."""
    if old.kind == "text" or new.kind == "null":
        return old
    if old.kind == "null":
        return new
    if old.kind == "union":
        branches = new.branches if new.kind == "union" else (column_types.widest(new),)
        places = column_types.places(branches, old)
        for at, branch in sorted(
            zip(places, branches, strict=True), key=lambda each: each[0] is None
        ):
            old = _with_branch(old, at, branch, path)
        return old
    if old.kind == new.kind == "record":
        fields = dict(old.fields)
        for name, kind in new.fields.items():
            inner = f"{path}.{name}" if path else name
            fields[name] = _merge(fields[name], kind, inner) if name in fields else kind
        _refuse_like_names(fields, path)
        return replace(old, fields=fields)
    if old.kind == new.kind and old.item is not None and new.item is not None:
        mark = "[]" if old.kind == "array" else "{}"
        return replace(old, item=_merge(old.item, new.item, f"{path}{mark}"))
    wider = column_types.wider(old, new)
    if wider is None:
        raise IncompatibleSchema(f"{path or 'value'}: {new} where earlier versions have {old}")
    return wider


def _with_branch(union: AvroType, at: int | None, new: AvroType, path: str) -> AvroType:
    """Add a branch to a union, or merge it with the branch at ``at``."""
    branches = list(union.branches)
    if at is None:
        branches.append(new)
    else:
        branches[at] = _merge(branches[at], new, path)
    kinds = [branch.kind for branch in branches]
    if "int" in kinds and "long" in kinds:
        raise IncompatibleSchema(f"{path or 'value'}: a union of a date and plain numbers")
    if "long" in kinds and "double" in kinds:
        # Avro reads an int as the first compatible type.
        at, double = kinds.index("long"), kinds.index("double")
        branches.insert(min(at, double), branches.pop(at))
    return replace(union, branches=tuple(branches))


def _beside(kind: AvroType, held: DataType | None) -> AvroType:
    """Add the table's existing members to the unions of a type."""
    if isinstance(held, ArrayType) and kind.kind == "array" and kind.item is not None:
        return replace(kind, item=_beside(kind.item, held.elementType))
    if isinstance(held, MapType) and kind.kind == "map" and kind.item is not None:
        return replace(kind, item=_beside(kind.item, held.valueType))
    if not isinstance(held, StructType):
        return kind
    have = {field.name: field.dataType for field in held.fields}
    if kind.kind == "record":
        fields = {name: _beside(of, have.get(name)) for name, of in kind.fields.items()}
        return replace(kind, fields=fields)
    if kind.kind == "union":
        known = replace(kind, held=frozenset(have))
        branches = tuple(
            _beside(branch, have.get(name)) for name, branch in column_types.members(known)
        )
        return replace(known, branches=branches)
    return kind


def _refuse_like_names(fields: Iterable[str], path: str) -> None:
    """Refuse fields that differ only in case, because columns are case-insensitive."""
    seen: dict[str, str] = {}
    for name in fields:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise IncompatibleSchema(
                f"{path or 'value'}: fields {other} and {name} differ only in case"
            )


def _core(kind: AvroType) -> AvroType:
    """The type in a union of null and one type; other types are returned unchanged."""
    several = [b for b in kind.branches if b.kind != "null"]
    return several[0] if kind.kind == "union" and len(several) == 1 else kind
