"""Derive a captured table from the registry schemas of its topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql.types import BinaryType, DataType, StructType

from spark_ingest.avro.evolution import apart, combine
from spark_ingest.avro.schema import AvroSchema, AvroType, WriterSchema, parse
from spark_ingest.captured import AFTER
from spark_ingest.drafts.captured_columns import CapturedColumn, captured_column
from spark_ingest.errors import ConfigurationError
from spark_ingest.records.topic_schemas import RESERVED

_ENVELOPE = ("before", AFTER, "source", "op")
# The fields added by Debezium's flattening, with their names in the connector's settings.
_OPERATION, _DELETED = "__op", "__deleted"
_ADDED = {_OPERATION: "op", "__source_ts_ms": "source.ts_ms"}
CHANGE_ABSENT = "the topic is created with the table's first row or change"
_POSITIONS: dict[Literal["lsn", "binlog"], tuple[str, ...]] = {
    "lsn": ("lsn",),
    "binlog": ("file", "pos", "row"),
}


@dataclass(frozen=True)
class CapturedTable:
    """A captured table, derived from its topic.

    Attributes:
        form: ``flattened`` or ``envelope``.
        position: ``lsn`` or ``binlog``.
        key: The primary-key columns.
        key_type: The type of the decoded key in bronze; None without keys.
        fields: The fields of the value in bronze, in order: names and types.
        columns: The columns of the models.
        left_out: The columns that the models exclude, with their types in bronze.
    """

    topic: str
    form: Literal["flattened", "envelope"]
    position: Literal["lsn", "binlog"]
    key: tuple[str, ...]
    key_type: str | None
    fields: Mapping[str, str]
    columns: tuple[CapturedColumn, ...]
    left_out: Mapping[str, str]


def topic_of(subjects: Iterable[str], source: str, table: str, absent: str = CHANGE_ABSENT) -> str:
    """Find the topic of a table by the registry's subjects.

    ``subjects`` are all subjects of the registry. Topics whose name begins with ``source``, the
    dbt source, are preferred. ``absent`` is a hint why the topic may not exist.

    Raises:
        ConfigurationError: No topic matches, or several do.
    """
    ends = f".{table}-value"
    found = sorted(name.removesuffix("-value") for name in subjects if name.endswith(ends))
    own = [topic for topic in found if topic.startswith(f"{source}.")]
    fitting = own or found
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise ConfigurationError(
            f"the registry has no subject that ends with {ends}: {absent}; "
            "give a topic with another name by --topic"
        )
    raise ConfigurationError(
        f"several topics match {source}.{table}: {', '.join(fitting)}: choose one with --topic"
    )


def read_table(
    topic: str,
    values: Sequence[WriterSchema],
    keys: Sequence[WriterSchema],
    key: Sequence[str],
    entity: str,
    taken: Collection[str] = (),
    beside: Collection[str] = (),
) -> CapturedTable:
    """Derive a table from the schemas of its topic.

    Args:
        values: All versions of the schema of its values, the newest last.
        keys: All versions of the schema of its keys; empty without a subject for them.
        key: Primary-key columns from the options; empty for the fields of the keys.
        taken: Names that columns of the models must not have.
        beside: Columns of `captured_changes` besides those of the row.

    Raises:
        ConfigurationError: There is no schema, it is not of a captured table, or there is no key.
    """
    fields, newest = fields_of(topic, values)
    form, row, written, docs = _row_of(topic, fields, newest)
    key_type = combine(keys).whole if keys else None
    named = _key_of(topic, key_type, key, row)
    columns, left_out = model_columns(
        row, written, docs, entity, named, taken, has_array_texts=form == "envelope", beside=beside
    )
    for name in named:
        if name in left_out:
            raise ConfigurationError(
                f"{topic}: key column {name} is {left_out[name]}, which models do not "
                f"support: {_other_key(row[name])}"
            )
    return CapturedTable(
        topic=topic,
        form=form,
        position=_position_of(topic, form, fields),
        key=named,
        key_type=None if key_type is None else key_type.simpleString(),
        fields={name: kind.simpleString() for name, kind in fields.items()},
        columns=tuple(columns),
        left_out={
            name: kind
            for name, kind in left_out.items()
            if not (form == "flattened" and name.startswith("__"))
        },
    )


def model_columns(
    row: Mapping[str, DataType],
    written: Mapping[str, AvroSchema],
    docs: Mapping[str, str],
    entity: str,
    key: Collection[str] = (),
    taken: Collection[str] = (),
    **more: Any,
) -> tuple[list[CapturedColumn], dict[str, str]]:
    """The columns of the models, and the types in bronze of excluded ones by name."""
    columns: list[CapturedColumn] = []
    left_out = {}
    for name, kind in row.items():
        column = None
        # Names with this prefix are metadata.
        if not name.startswith("_"):
            column = captured_column(
                name,
                written[name],
                kind,
                entity,
                name in key,
                docs.get(name, ""),
                taken={*taken, *(each.name for each in columns)},
                **more,
            )
        if column is None:
            left_out[name] = kind.simpleString()
        else:
            columns.append(column)
    return columns, left_out


def fields_of(
    topic: str, values: Sequence[WriterSchema], absent: str = CHANGE_ABSENT
) -> tuple[dict[str, DataType], AvroType]:
    """The fields of a topic's values in bronze, by the newest schema.

    ``values`` are all versions of the schema of its values, the newest last; ``absent`` is a hint
    why the topic may not exist. Returns the fields with their types, and the newest schema.

    Raises:
        ConfigurationError: There is no schema, or the newest is not a record or incompatible.
    """
    if not values:
        raise ConfigurationError(
            f"the registry has no subject {topic}-value: {absent}; give a topic with another "
            "name by --topic"
        )
    together = combine(values, reserved=RESERVED)
    last = values[-1]
    if last.id in together.incompatible or not together.is_record or last.schema is None:
        why = together.incompatible.get(last.id, "it is not a record")
        raise ConfigurationError(f"the newest schema of {topic}-value cannot be used: {why}")
    newest = apart(parse(last.schema, last.references), RESERVED)
    types = {field.name: field.dataType for field in together.columns}
    return {name: types[name] for name in newest.fields if name in types}, newest


def _row_of(
    topic: str, fields: Mapping[str, DataType], newest: AvroType
) -> tuple[
    Literal["flattened", "envelope"], dict[str, DataType], dict[str, AvroSchema], Mapping[str, str]
]:
    """Form and columns of the table: types in bronze, Avro schemas and docs by column."""
    if all(name in fields for name in _ENVELOPE):
        after = fields[AFTER]
        written = newest.fields[AFTER].original
        some = [b for b in written if b != "null"] if isinstance(written, list) else []
        if isinstance(after, StructType) and len(some) == 1:
            inside = parse(some[0])
            types = {f.name: f.dataType for f in after}
            row = {name: types[name] for name in inside.fields if name in types}
            return "envelope", row, _written(inside), inside.docs
    if _OPERATION in fields:
        for name, added in _ADDED.items():
            if name not in fields:
                raise ConfigurationError(
                    f"{topic} has no {name}: configure the connector to add it "
                    f"(transforms.….add.fields with {added})"
                )
        if _DELETED not in fields:
            raise ConfigurationError(
                f"{topic} has no {_DELETED}: configure the connector to keep deletes "
                "(transforms.….delete.tombstone.handling.mode=rewrite-with-tombstone)"
            )
        return "flattened", dict(fields), _written(newest), newest.docs
    raise ConfigurationError(
        f"{topic} has no changes of a captured table: neither an envelope "
        f"({', '.join(_ENVELOPE)}) nor flattened rows ({_OPERATION}); declare it by hand "
        "(docs/ingest.md)"
    )


def _written(record: AvroType) -> dict[str, AvroSchema]:
    return {name: kind.original for name, kind in record.fields.items()}


def _key_of(
    topic: str, key_type: DataType | None, given: Sequence[str], row: Mapping[str, DataType]
) -> tuple[str, ...]:
    for name in given:
        if name not in row:
            there = ", ".join(each for each in row if not each.startswith("_"))
            raise ConfigurationError(
                f"--key {name}: {topic} has no such column; there are: {there}"
            )
    if not isinstance(key_type, StructType):
        if not given:
            raise ConfigurationError(
                f"{topic} has no keys (no subject {topic}-key), which identify the row of a "
                "change: give columns that are unique together with --key"
            )
        return tuple(given)
    if given and set(given) != set(key_type.names):
        raise ConfigurationError(
            f"the records of {topic} have the key {', '.join(key_type.names)}, but --key is "
            f"{', '.join(given)}: remove it, or set the connector's message.key.columns"
        )
    return tuple(key_type.names)


def _other_key(kind: DataType) -> str:
    """The fix for an unsupported key type (debezium.io, connector properties)."""
    if isinstance(kind, BinaryType):
        return "configure the connector to write bytes as text (binary.handling.mode=hex)"
    if isinstance(kind, StructType) and kind.names == ["scale", "value"]:
        return (
            "give the column a precision in the database, such as numeric(20,0), or use a "
            "separate connector for the table that writes numbers as text "
            "(decimal.handling.mode=string)"
        )
    return "configure other unique columns in the connector (message.key.columns)"


def _position_of(topic: str, form: str, fields: Mapping[str, DataType]) -> Literal["lsn", "binlog"]:
    place = fields.get("source")
    inside = place.names if isinstance(place, StructType) else []
    for position, names in _POSITIONS.items():
        flat = [f"__{name}" for name in names]
        if position == "binlog":
            flat = [f"__source_{name}" for name in names]
        have = inside if form == "envelope" else fields
        if all(name in have for name in (names if form == "envelope" else flat)):
            return position
    raise ConfigurationError(
        f"{topic} has no position in the database's log: configure the connector to add it "
        "(transforms.….add.fields with lsn; for MariaDB source.file, source.pos and source.row)"
    )
