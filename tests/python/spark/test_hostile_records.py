"""Records made to cost as much as they can: validated in a time that their bytes account for.

Fails when a few bytes, or a few million, keep a stream longer than their number explains.
"""

from __future__ import annotations

import itertools
import time

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import TopicSchema, combine, declared
from spark_ingest.avro.framing import JSON, apicurio_headers, header
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.records.validation import Validator, validator
from tests.python.spark.test_ingest_decode import kafka
from tests.python.world.avro import combined, record

SIZE = 2**20
LIMIT = 2**22
# A job of Spark's for one record, on a machine that has other work to do, and what Python's
# decoder takes for a byte, several times over. What is square in a record's size takes minutes.
SECONDS = 5.0
MICROSECONDS_OF_A_BYTE = 5.0

Values = list[bytes]

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
PLAIN = record(
    ("text", "string"),
    ("number", DECIMAL),
    ("map", {"type": "map", "values": "int"}),
    ("array", {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}),
    ("when", {"type": "long", "logicalType": "timestamp-millis"}),
)
NODE = record(
    ("number", DECIMAL),
    ("texts", {"type": "array", "items": "string"}),
    ("nothing", {"type": "array", "items": "null"}),
    ("left", ["null", "Node"]),
    ("right", ["null", "Node"]),
    name="Node",
)
TREE = record(("root", NODE))
COLUMNS = (
    "i int, d double, m decimal(10,2), s string, x binary, t timestamp, day date, "
    "k map<string, int>, a array<int>, _json string"
)


@pytest.mark.nightly
def test_avro_takes_no_longer_than_its_bytes_account_for(spark: SparkSession) -> None:
    none, zero = number(0), chunk(b"\x00")
    before, rest = none + zero, none + none + none
    of_buffers, of_text = of_one_hash(b"aA", b"BB"), of_one_hash(b"Aa", b"BB")
    kinds = {
        "text": chunk(b"a" * SIZE) + zero + rest,
        "text, not UTF-8 at its end": chunk(b"a" * SIZE + b"\xff") + zero + rest,
        "surrogates": chunk(b"\xed\xa0\x80" * (SIZE // 3)) + zero + rest,
        "text that ends early": number(SIZE) + b"a" * (SIZE // 2),
        "decimal": none + chunk(b"\x7f" * SIZE) + rest,
        "decimal, zeros before it": none + chunk(b"\x00" * SIZE + b"\x01") + rest,
        "map": before + ints(distinct(SIZE // 9)) + none + none,
        "map, keys of one hash": before + ints(of_text) + none + none,
        "map, keys of one hash of buffers": before + ints(of_buffers) + none + none,
        "blocks of one item": before + none + b"\x02" * (SIZE // 2) + none + none,
        "left over": before + rest + b"\x00" * SIZE,
        "a number without an end": before + none + none + b"\xff" * SIZE,
    }
    small = before + none + number(10**15) + none
    trial(
        spark,
        combined(PLAIN),
        {name: [header(1) + value] for name, value in kinds.items()}
        | {"items of no bytes, many records": copies(header(1) + small)},
    )


@pytest.mark.nightly
def test_json_text_of_avro_takes_no_longer_than_its_bytes_account_for(spark: SparkSession) -> None:
    zero = chunk(b"\x00")
    leaf, down = zero + bytes(4), zero + b"\x00\x00\x02"
    kinds = {
        "decimal": chunk(b"\x7f" * SIZE) + bytes(4),
        "decimal, zeros before it": chunk(b"\x00" * SIZE + b"\x01") + bytes(4),
        "deep": down * (SIZE // 5),
        "as deep as may be": down * 499 + leaf + bytes(499),
        "texts": zero + block([b"a"] * (SIZE // 2)) + bytes(3),
        "one text": zero + block(["\U0001f600".encode() * (SIZE // 4)]) + bytes(3),
        "a tree": tree(2**15),
        "ends early": down * 9 + leaf * 50,
    }
    small = zero + b"\x00" + number(10**15) + bytes(3)
    trial(
        spark,
        combined(TREE),
        {name: [header(1) + value] for name, value in kinds.items()}
        | {"items of no bytes, many records": copies(header(1) + small)},
    )


@pytest.mark.nightly
def test_json_takes_no_longer_than_its_bytes_account_for(spark: SparkSession) -> None:
    digits = b"7" * SIZE
    names = [b'"%s":1' % name for name in distinct(SIZE // 12)]
    of_java = [b'"%s":1' % name for name in of_one_hash(b"Aa", b"BB")]
    of_jackson = [b'"%s":1' % name for name in of_one_hash(b"Ab", b"BA")]
    kinds = {
        "deep arrays": b'{"a":' + b"[" * SIZE,
        "deep objects, no column": b'{"z":' + b'{"z":' * (SIZE // 5),
        "decimal as text": b'{"m":"' + digits + b'"}',
        "decimal": b'{"m":' + digits + b"}",
        "decimal, zeros behind it": b'{"m":"1.' + b"0" * SIZE + b'"}',
        "double": b'{"d":' + digits + b"}",
        "fraction": b'{"d":0.' + digits + b"}",
        "whole number": b'{"i":' + digits + b"}",
        "date": b'{"day":"' + digits + b'"}',
        "time": b'{"t":"2026-01-01T00:00:00.' + digits + b'x"}',
        "text": b'{"s":"' + rb"\u0000" * (SIZE // 6) + b'"}',
        "half surrogates": b'{"s":"' + rb"\ud83d\ude00" * (SIZE // 12) + rb'\ud800"}',
        "numbers in text": b'{"s":[' + b"1e-300," * (SIZE // 7) + b"1e-300]}",
        "base64": b'{"x":"' + b"QUJD" * (SIZE // 4) + b'="}',
        "fields, no columns": b"{" + b",".join(names) + b"}",
        "fields of one hash, no columns": b"{" + b",".join(of_jackson) + b"}",
        "map": b'{"k":{' + b",".join(names) + b"}}",
        "map, keys of one hash": b'{"k":{' + b",".join(of_java) + b"}}",
        "map, keys of one hash of Jackson's": b'{"k":{' + b",".join(of_jackson) + b"}}",
        "one field again and again": b"{" + b",".join([b'"z":0'] * (SIZE // 6)) + b"}",
        "numbers": b'{"a":[' + b"0," * (SIZE // 2) + b"0]}",
        "spaces": b"{" + b" " * SIZE + b"}",
        "a name": b'{"' + b"n" * SIZE + b'":1}',
    }
    small = (
        b'{"m":0e-999999999}',
        b'{"m":"0e-999999999"}',
        b'{"m":0e999999999}',
        b'{"m":1e-999999999}',
        b'{"m":1e999999999}',
        b'{"d":1e-999999999}',
        b'{"d":0e-999999999}',
        b'{"s":1e-999999999}',
        b'{"s":0e-999999999}',
    )
    trial(
        spark,
        json_columns(),
        {name: [value] for name, value in kinds.items()}
        | {f"{each.decode()}, many records": copies(each) for each in small},
    )


def test_what_is_too_long_is_not_looked_at(spark: SparkSession) -> None:
    of_json = {"decimal as text": [b'{"m":"' + b"7" * 2 * SIZE + b'"}']}
    trial(spark, json_columns(), of_json, SIZE)
    of_avro = {"decimal": [header(1) + chunk(b"\x7f" * 2 * SIZE) + bytes(4)]}
    trial(spark, combined(TREE), of_avro, SIZE)


@pytest.mark.nightly
def test_headers_take_no_longer_than_their_bytes_account_for(spark: SparkSession) -> None:
    each = "named_struct('key', 'apicurio.value.globalId', 'value', unhex('{}'))"
    headers = [each.format(digits) for digits in ("00" * SIZE, "ff" * 8)]
    framing = apicurio_headers("global")
    schema = combine([WriterSchema(1, TREE)], framing=framing)
    for header_of in (f"array({headers[0]})", f"array_repeat({headers[1]}, 30000)"):
        trial(spark, schema, {header_of[:80]: [bytes(SIZE)]}, headers=header_of)


def json_columns() -> TopicSchema:
    """What a source declares of its JSON."""
    columns = StructType.fromDDL(COLUMNS)
    assert isinstance(columns, StructType)
    return declared(JSON, columns)


def trial(
    spark: SparkSession,
    schema: TopicSchema,
    kinds: dict[str, Values],
    limit: int = LIMIT,
    headers: str = "headers",
) -> None:
    """Validate and decode each kind's records, and print what a byte took."""
    made = validator("id", schema, None, limit)
    assert schema.usable, schema.incompatible
    # The first pays for what Spark makes once.
    seconds(spark, made, [b"{}"], headers)
    slow = []
    for name, values in kinds.items():
        size = sum(map(len, values))
        took = seconds(spark, made, values, headers)
        print(f"{name}: {size:,} bytes, {took:.2f} s, {took / size * 1e9:,.0f} ns a byte")
        if took > SECONDS + size * MICROSECONDS_OF_A_BYTE / 1e6:
            slow.append(f"{name}: {took:.1f} s for {size:,} bytes")
    assert not slow


def seconds(spark: SparkSession, made: Validator, values: Values, headers: str) -> float:
    """What Spark takes to validate and decode records of one topic, given their headers in SQL."""
    records = kafka(spark, *values).withColumn("headers", F.expr(headers))
    validated = made.validate(records)
    columns = [column.alias(name) for name, column in validated.columns.items()]
    began = time.monotonic()
    validated.records.select("_error", *columns).write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def copies(value: bytes) -> Values:
    """As many of a small record as make up a large one."""
    return [value] * (SIZE // 16 // len(value))


def number(value: int) -> bytes:
    """A number in Avro's binary."""
    bits, found = value << 1, bytearray()
    while bits > 0x7F:
        found.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes([*found, bits])


def chunk(content: bytes) -> bytes:
    """Bytes or a text in Avro's binary."""
    return number(len(content)) + content


def block(contents: Values) -> bytes:
    """An array of texts in Avro's binary."""
    return number(len(contents)) + b"".join(map(chunk, contents)) + b"\x00"


def ints(keys: Values) -> bytes:
    """A map of zeros in Avro's binary."""
    pairs = b"".join(chunk(key) + b"\x00" for key in keys)
    return number(len(keys)) + pairs + b"\x00"


def tree(leaves: int) -> bytes:
    """A record that contains itself twice, and so on until there are so many."""
    if leaves == 1:
        return b"\x02\x00\x00\x00\x00\x00"
    half = tree(leaves // 2)
    return b"\x02\x00\x00\x00\x02" + half + b"\x02" + half


def distinct(count: int) -> Values:
    """Names that differ."""
    return [b"%07d" % each for each in range(count)]


def of_one_hash(first: bytes, second: bytes) -> Values:
    """Names made of two parts of one hash, which then all have one."""
    return [b"".join(parts) for parts in itertools.product((first, second), repeat=16)]
