"""What a value of Avro is in the lake's columns, as docs/ingest.md says: of any type, or as text.

It takes values as :mod:`tests.python.spark.avro_reference` reads them, with resolved schemas,
and like that shares nothing with the engine.
"""

from __future__ import annotations

import base64
import decimal
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from tests.python.spark.avro_reference import Branch, is_decimal

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_IN_A_DAY = 86_400_000_000
_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b",
    "\f": "\\f",
}  # fmt: skip


def column(schema: Any, value: Any, kind: DataType) -> Any:
    """A value as a column of a type holds it; times as numbers, floats as text."""
    if isinstance(value, Branch):
        branch = schema[value.at]
        if branch == "null":
            return None
        if sum(each != "null" for each in schema) == 1:
            return column(branch, value.value, kind)
        assert isinstance(kind, StructType)
        name = _member(branch, kind.names)
        return {
            field.name: column(branch, value.value, field.dataType) if field.name == name else None
            for field in kind
        }
    if isinstance(kind, StructType):
        have = {each["name"]: each["type"] for each in schema["fields"]}
        return {
            field.name: column(have[field.name], value[field.name], field.dataType)
            if field.name in have
            else None
            for field in kind
        }
    if isinstance(kind, ArrayType):
        return [column(schema["items"], item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        return {key: column(schema["values"], item, kind.valueType) for key, item in value.items()}
    if is_decimal(schema):
        number = decimal.Decimal(int.from_bytes(value, "big", signed=True))
        return number.scaleb(-schema.get("scale", 0), decimal.Context(prec=38))
    if _logical(schema) in ("timestamp-millis", "local-timestamp-millis"):
        return value * 1000
    return repr(value) if isinstance(value, float) else value


def _member(branch: Any, names: list[str]) -> str:
    """The member of a struct that a union's branch becomes."""
    kind = branch if isinstance(branch, str) else branch["type"]
    if kind in ("int", "float") and isinstance(branch, str):
        return {"int": "long", "float": "double"}[kind]
    full: str = kind if isinstance(branch, str) else branch.get("name", kind)
    spaced = full.replace(".", "_").lower()
    # Only where an earlier one took the short name does the namespace stand before it.
    return spaced if spaced in names else full.rpartition(".")[2].lower()


def _logical(schema: Any) -> str:
    return schema.get("logicalType", "") if isinstance(schema, dict) else ""


def json_text(schema: Any, value: Any) -> str | None:
    """A value as JSON text; None for null."""
    found = _json(schema, value)
    return None if found == "null" else found


def _json(schema: Any, value: Any) -> str:
    if isinstance(value, Branch):
        branch = schema[value.at]
        inner = _json(branch, value.value)
        if branch == "null" or sum(each != "null" for each in schema) == 1:
            return inner
        return f"{{{_quoted(_branch_name(schema, value.at))}:{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(_json(schema['items'], item) for item in value)}]"
    if isinstance(value, dict):
        kinds = {each["name"]: each["type"] for each in schema.get("fields", ())}
        parts = [
            f"{_quoted(name)}:{_json(kinds[name] if kinds else schema['values'], part)}"
            for name, part in value.items()
        ]
        return f"{{{','.join(parts)}}}"
    if is_decimal(schema):
        return _decimal(int.from_bytes(value, "big", signed=True), schema)
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        special = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}
        return '"NaN"' if math.isnan(value) else special.get(value, repr(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _time(_logical(schema), value)


def _branch_name(union: list[Any], at: int) -> str:
    names = [b if isinstance(b, str) else b.get("name", b["type"]) for b in union]
    short = [name.rpartition(".")[2] for name in names]
    if short.count(short[at]) > 1:
        return str(names[at].replace(".", "_").lower())
    return str(short[at].lower())


def _quoted(content: str) -> str:
    spelled = (
        _ESCAPES.get(each, f"\\u{ord(each):04x}" if each < " " else each) for each in content
    )
    return f'"{"".join(spelled)}"'


def _decimal(unscaled: int, schema: Any) -> str:
    scale = schema.get("scale", 0)
    digits = str(abs(unscaled)).zfill(scale + 1)
    whole, part = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return f"{'-' * (unscaled < 0)}{whole}{'.' * (scale > 0)}{part}"


def _time(logical: str, number: int) -> str:
    if logical == "date":
        is_date = _FIRST_DAY <= number <= _LAST_DAY
        return f'"{_date(number)}"' if is_date else str(number)
    kind, _, unit = logical.rpartition("-")
    if kind not in ("timestamp", "local-timestamp") or unit == "nanos":
        return str(number)
    micros = number * (1000 if unit == "millis" else 1)
    day, of_day = divmod(micros, _IN_A_DAY)
    if not _FIRST_DAY <= day <= _LAST_DAY:
        return str(number)
    seconds, rest = divmod(of_day, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if rest:
        clock += f".{rest:06}"
    return f'"{_date(day)}T{clock}{"" if kind.startswith("local") else "Z"}"'


def _date(day: int) -> str:
    """A day since 1970 by the rule of leap years: 146,097 days every 400 years."""
    # Counted from the first of March of the year 0, so that the leap day is a year's last.
    cycle, rest = divmod(day + 719_468, 146_097)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5 + 1
    year += 400 * cycle + (month >= 10)
    return f"{year:04}-{(month + 2) % 12 + 1:02}-{of_month:02}"


def plain(values: pa.Array) -> Iterator[Any]:
    """Values of Arrow's as plain ones: Python has no room for some dates."""
    kind = values.type
    valid = values.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [list(plain(part)) for part in values.flatten()]
        for at, is_there in enumerate(valid):
            yield ({n: p[at] for n, p in zip(names, parts, strict=True)} if is_there else None)
    elif pa.types.is_map(kind):
        pairs = list(zip(plain(values.keys), plain(values.items), strict=True))
        ends = values.offsets.to_pylist()
        for at, is_there in enumerate(valid):
            yield dict(pairs[ends[at] : ends[at + 1]]) if is_there else None
    elif pa.types.is_list(kind):
        items = plain(values.flatten())
        for size in values.value_lengths().to_pylist():
            yield None if size is None else [next(items) for _ in range(size)]
    else:
        if pa.types.is_date(kind):
            values = values.cast(pa.int32())
        elif pa.types.is_timestamp(kind):
            values = values.cast(pa.int64())
        for value in values.to_pylist():
            yield repr(value) if isinstance(value, float) else value
