"""Derive name, type and SQL of a dbt column from a database column or an event field."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from spark_ingest.avro.schema import AvroSchema

Group = Literal["keys", "attributes", "numbers", "flags", "times"]
GROUPS: tuple[Group, ...] = ("keys", "attributes", "numbers", "flags", "times")
# The maximum of Redshift for strings in Iceberg tables.
LONGEST_TEXT = 16_384
_TEXT = 4096
# The length per key column in `key_text` of the histories.
_KEY_TEXT = 128
_BYTES_OF_LETTER = 4
_AS_THEY_ARE: dict[type[DataType], str] = {IntegerType: "integer", LongType: "bigint"}
# By Debezium's semantic types (debezium.io, "Data type mappings").
_MOMENTS = {
    "io.debezium.time.Timestamp": "{{{{ timestamp_from_millis({name}) }}}}",
    "io.debezium.time.MicroTimestamp": "{{{{ timestamp_from_micros({name}) }}}}",
    "io.debezium.time.ZonedTimestamp": "{{{{ timestamp_from_zoned({name}) }}}}",
}
_COUNTS = {
    "io.debezium.time.Date": "days",
    "io.debezium.time.Timestamp": "millis",
    "io.debezium.time.MicroTimestamp": "micros",
    "io.debezium.time.ZonedTimestamp": "zoned",
}
_LENGTHS = {
    "io.debezium.data.Uuid": 36,
    "io.debezium.time.ZonedTime": 32,
    "io.debezium.data.Json": LONGEST_TEXT,
    "io.debezium.data.Xml": LONGEST_TEXT,
    "io.debezium.data.Tsvector": LONGEST_TEXT,
}
_UNITS = {
    "io.debezium.time.Time": "milliseconds since midnight",
    "io.debezium.time.MicroTime": "microseconds since midnight",
    "io.debezium.time.NanoTime": "nanoseconds since midnight",
    "io.debezium.time.NanoTimestamp": "nanoseconds since 1970, UTC",
    "io.debezium.time.MicroDuration": "duration in microseconds",
    "io.debezium.time.NanoDuration": "duration in nanoseconds",
}
_LENGTH = "__debezium.source.column.length"
# Reserved words of either engine, which cannot be unquoted column names; Redshift's are in its
# documentation ("Reserved words"). PostgreSQL, and so the emulator, allows many of them.
_RESERVED = """
aes128 aes256 all allowoverwrite analyse analyze and any append array as asc authorization az64
backup begin between binary blanksasnull both bytedict bzip2 case cast check collate column
comprows compupdate connect constraint create credentials cross current current_date
current_time current_timestamp current_user current_user_id datetime default deferrable deflate
defrag delete delimiters delta delta32k desc disable distinct do drop else emptyasnull enable
encode encrypt encryption end except explicit explicit_ids false fetch fillrecord first for
foreign freeze from full globaldict256 globaldict64k grant group gzip having identity ignore
ignoreblanklines ignoreheader ilike in initially inner insert intersect interval into is isnull
join last leading left like limit localtime localtimestamp lun luns lzo lzop minus mostly16
mostly32 mostly8 natural new not notnull null nulls off offline offset oid old on only open or
order outer over overlaps parallel partition percent permissions pivot placing primary qualify
range raw readratio recover references rejectlog resort respect restore right row rows runlength
select session session_user set similar snapshot some start sysdate system table tag tdes
text255 text32k then timestamp to top trailing true truncatecolumns union unique unnest unpivot
update user using values verbose wallet when where window with within without
"""
# Generic names, which get the entity as a prefix.
_BARE = """
code comment count data date day description hour id index key kind label level minute month
name note number position role second size sort state status text time title type value version
year zone at
"""


# Names of dates and timestamps that add nothing to the suffix.
_ONLY_WHEN = ("at", "date", "day", "time", "timestamp")


@dataclass(frozen=True)
class CapturedColumn:
    """A column of the database and of the models.

    Attributes:
        source: Name in bronze.
        name: Name in the models.
        contract: Type in the models.
        group: The group of columns to which it belongs.
        sql: Its expression in staging.
        doc: Its description.
        max_bytes: Maximum length of a text in bytes; None for other types.
        counts: Unit of a date or timestamp, as in the test `moments_fit`; None for other types.
    """

    source: str
    name: str
    contract: str
    group: Group
    sql: str
    doc: str
    max_bytes: int | None = None
    counts: str | None = None


@dataclass(frozen=True)
class _Shape:
    contract: str
    group: Group
    sql: str
    unit: str = ""
    max_bytes: int | None = None


def captured_column(
    name: str,
    written: AvroSchema,
    stored: DataType,
    entity: str,
    is_key: bool = False,
    doc: str = "",
    has_array_texts: bool = False,
    taken: Collection[str] = (),
    beside: Collection[str] = (),
    rows: str = "changes",
    writer: str = "the database",
) -> CapturedColumn | None:
    """The column; None if its type has no counterpart in both engines.

    Args:
        written: Avro schema of the field.
        stored: Type in bronze.
        entity: The name of one row, such as ``film_actor``.
        is_key: Whether it is a primary-key column.
        has_array_texts: Whether `captured_changes` returns arrays of strings as one string.
        taken: Names that it must not have.
        beside: Columns of `captured_changes` besides those of the row; a column of the row
            with such a name is ``row_<name>`` there.
        rows: Name of the CTE that staging reads.
        writer: The origin of the values, for the description if the schema has none.
    """
    if has_array_texts and stored == ArrayType(StringType()):
        stored = StringType()
    kind = _without_null(written)
    shape = _shape(name, kind, stored, is_key)
    if shape is None:
        return None
    renamed = _free(_renamed(name, shape.contract, entity), entity, taken)
    group = "keys" if is_key or renamed.endswith("_id") else shape.group
    description = doc or _described(renamed, shape, writer)
    placed = f"row_{name}" if name.lower() in beside else name
    if name.lower() in _RESERVED.split():
        placed = f"{rows}.{name}"
    sql = shape.sql.format(column=placed, name=f'"{placed}"')
    plain = sql == renamed
    return CapturedColumn(
        source=name,
        name=renamed,
        contract=shape.contract,
        group=group,
        sql=sql if plain else f"{sql} as {renamed}",
        doc=" ".join(description.split()),
        max_bytes=shape.max_bytes,
        counts=_COUNTS.get(str(kind.get("connect.name", ""))),
    )


def singular(table: str) -> str:
    """The singular of a table's name."""
    head, _, last = table.rpartition("_")
    if last.endswith("ies") and len(last) > len("pies"):
        last = f"{last[:-3]}y"
    elif last.endswith(("sses", "xes", "zes", "ches", "shes")):
        last = last[:-2]
    elif last.endswith("s") and not last.endswith(("ss", "us", "is")):
        last = last[:-1]
    return f"{head}_{last}" if head else last


def snake_case(name: str) -> str:
    """A name in snake case: ASCII letters and digits, other characters as underscores."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold()
    snake = unicodedata.normalize("NFKD", snake).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", snake).strip("_")


def _described(name: str, shape: _Shape, writer: str) -> str:
    text = name.removeprefix("is_").replace("_", " ")
    if shape.contract == "boolean":
        return f"Whether it is {text}, according to {writer}."
    if text.endswith(" id"):
        return f"Id of the {text.removesuffix(' id')} in {writer}."
    return f"{text[:1].upper()}{text[1:]} in {writer}{shape.unit}."


def _without_null(written: AvroSchema) -> Mapping[str, Any]:
    if isinstance(written, list):
        some = [branch for branch in written if branch != "null"]
        written = some[0] if len(some) == 1 else {"type": "union"}
    return {"type": written} if isinstance(written, str) else dict(written)


def _shape(name: str, kind: Mapping[str, Any], stored: DataType, is_key: bool) -> _Shape | None:
    meaning = str(kind.get("connect.name", ""))
    if isinstance(stored, BooleanType):
        return _Shape("boolean", "flags", "{column}")
    if isinstance(stored, DecimalType):
        return _decimal(name, stored)
    if isinstance(stored, DateType):
        return _Shape("date", "times", "{column}")
    if isinstance(stored, (TimestampType, TimestampNTZType)):
        return _Shape("timestamp", "times", "cast({column} as timestamp)", "; UTC")
    if meaning == "io.debezium.time.Date":
        return _Shape("date", "times", "{{{{ date_from_days({name}) }}}}")
    if meaning in _MOMENTS:
        return _Shape("timestamp", "times", _MOMENTS[meaning], "; UTC")
    if isinstance(stored, StringType):
        longest = _KEY_TEXT if is_key else _longest(kind, meaning)
        sql = f"{{{{{{{{ trimmed_text({{name}}, {longest}) }}}}}}}}"
        if is_key:
            # Keys may differ by trailing blanks only.
            sql = f"cast({{column}} as varchar({longest}))"
        return _Shape(f"varchar({longest})", "attributes", sql, "", longest)
    contract = _AS_THEY_ARE.get(type(stored))
    if contract is None:
        return None
    unit = _UNITS.get(meaning)
    return _Shape(contract, "numbers", "{column}", f": {unit}" if unit else "")


def _decimal(name: str, stored: DecimalType) -> _Shape:
    contract = f"decimal({stored.precision},{stored.scale})"
    money = 18, 2
    if (
        name.lower().endswith("_amount")
        and stored.scale <= money[1]
        and stored.precision - stored.scale <= money[0] - money[1]
    ):
        sql = "cast({column} as decimal(18, 2))"
        return _Shape("decimal(18,2)", "numbers", sql)
    return _Shape(contract, "numbers", "{column}")


def _longest(kind: Mapping[str, Any], meaning: str) -> int:
    parameters = kind.get("connect.parameters", {})
    allowed = parameters.get("allowed", "")
    if meaning == "io.debezium.data.Enum" and allowed:
        return max(16, *(len(each.encode()) for each in allowed.split(",")))
    if meaning == "io.debezium.data.EnumSet" and allowed:
        return max(16, len(allowed.encode()))
    if str(parameters.get(_LENGTH, "")).isdigit():
        return min(_BYTES_OF_LETTER * int(parameters[_LENGTH]), LONGEST_TEXT)
    return _LENGTHS.get(meaning, _TEXT)


def _free(name: str, entity: str, taken: Collection[str]) -> str:
    """The name; if it is taken, with the entity as a prefix and, if needed, a number."""
    if name not in taken:
        return name
    base = re.sub(rf"^((?:is|has)_)?(?!{entity}_)", rf"\g<1>{entity}_", name)
    number, found = 1, base
    while found in taken:
        number += 1
        found = f"{base}_{number}"
    return found


def _renamed(name: str, contract: str, entity: str) -> str:
    """The name by the project's conventions: snake case, ``_date``, ``_at``, ``is_``."""
    bare = snake = snake_case(name)
    if snake in (_RESERVED + _BARE).split() or not snake[:1].isalpha():
        snake = f"{entity}_{'value' if snake in ('', entity) else snake}"
    ending = {"timestamp": "_at", "date": "_date"}.get(contract, "")
    if ending and bare in _ONLY_WHEN:
        return f"{entity}{ending}"
    if contract == "timestamp" and snake.endswith(("_date", "_time")):
        snake = snake[: -len("_date")]
    if ending and not snake.endswith(ending):
        return f"{snake}{ending}"
    if contract == "boolean" and not snake.startswith(("is_", "has_")):
        return f"is_{snake}"
    is_money = snake.endswith("_amount") and contract != "decimal(18,2)"
    implies_other_type = (
        (snake.endswith("_at") and contract != "timestamp")
        or (snake.endswith("_date") and contract != "date")
        or (snake.startswith(("is_", "has_")) and contract != "boolean")
    )
    return f"{entity}_{snake}_value" if is_money or implies_other_type else snake
