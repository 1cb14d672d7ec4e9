"""Records of captured tables as Debezium's connectors write them, with the schemas of its Avro.

The shapes are those of Debezium 3.5 behind Apicurio's converter: a default beside each column
that has one, what a type means under ``connect.name``, the row's record used twice.
"""

from __future__ import annotations

from typing import Any

_SNAPSHOT = {
    "type": "string",
    "connect.version": 1,
    "connect.parameters": {"allowed": "true,first,first_in_data_collection,last,false"},
    "connect.default": "false",
    "connect.name": "io.debezium.data.Enum",
}


def _record(name: str, namespace: str, fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": fields,
        "connect.name": f"{namespace}.{name}",
        **more,
    }


def _fields(**kinds: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": kind} for name, kind in kinds.items()]


def _optional(**kinds: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": ["null", kind], "default": None} for name, kind in kinds.items()]


_SOURCE = _record(
    "Source",
    "io.debezium.connector.postgresql",
    [
        *_fields(version="string", connector="string", name="string", ts_ms="long"),
        {"name": "snapshot", "type": [_SNAPSHOT, "null"], "default": "false"},
        *_fields(db="string"),
        *_optional(sequence="string", ts_us="long", ts_ns="long"),
        *_fields(schema="string", table="string"),
        *_optional(txId="long", lsn="long", xmin="long"),
    ],
)
_TRANSACTION = _record(
    "block",
    "event",
    _fields(id="string", total_order="long", data_collection_order="long"),
    **{"connect.version": 1},
)


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal of ``decimal.handling.mode=precise``."""
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }


def meaning(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A type whose meaning stands in its ``connect.name``."""
    return {"type": kind, "connect.version": 1, **more, "connect.name": name}


_RATING = meaning(
    "string",
    "io.debezium.data.Enum",
    **{"connect.parameters": {"allowed": "G,PG,PG-13"}, "connect.default": "G"},
)
FILM: list[dict[str, Any]] = [
    {"name": "film_id", "type": {"type": "int", "connect.default": 0}, "default": 0},
    {"name": "title", "type": "string"},
    {"name": "length", "type": ["null", {"type": "int", "connect.type": "int16"}], "default": None},
    {"name": "rental_rate", "type": ["null", decimal(4, 2)], "default": None},
    {"name": "rating", "type": [_RATING, "null"], "default": "G"},
    {
        "name": "special_features",
        "type": ["null", {"type": "array", "items": ["null", "string"]}],
        "default": None,
    },
    {
        "name": "fulltext",
        "type": ["null", meaning("string", "io.debezium.data.Tsvector")],
        "default": None,
    },
    {
        "name": "released_on",
        "type": ["null", meaning("int", "io.debezium.time.Date")],
        "default": None,
    },
    {
        "name": "last_update",
        "type": meaning("long", "io.debezium.time.MicroTimestamp", **{"connect.default": 0}),
        "default": 0,
    },
]


def with_field(fields: list[dict[str, Any]], name: str, kind: Any) -> list[dict[str, Any]]:
    """The fields with one more, or one of another type."""
    changed = {"name": name, "type": ["null", kind], "default": None}
    kept = [changed if field["name"] == name else field for field in fields]
    return kept if changed in kept else [*fields, changed]


def key_schema(topic: str, *names: str) -> dict[str, Any]:
    """The schema of a table's keys."""
    return _record("Key", topic, _fields(**dict.fromkeys(names, "int")))


def envelope(topic: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a table's changes as the connector makes them."""
    row = {"type": "record", "name": "Value", "fields": fields, "connect.name": f"{topic}.Value"}
    sides: list[dict[str, Any]] = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        *_fields(source=_SOURCE),
        *_optional(transaction=_TRANSACTION),
        *_fields(op="string"),
        *_optional(ts_ms="long", ts_us="long", ts_ns="long"),
    ]
    return _record("Envelope", topic, sides, **{"connect.version": 2})


def flattened(topic: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of rows with the connector's fields beside them."""
    added = _optional(
        __op="string",
        __db="string",
        __table="string",
        __schema="string",
        __lsn="long",
        __source_ts_ms="long",
        __source_sequence="string",
        __source_txId="long",
        __source_snapshot=_SNAPSHOT,
        __deleted="string",
    )
    return _record("Value", topic, [*fields, *added])


def source(lsn: int, **more: Any) -> dict[str, Any]:
    """What an envelope says of where its change comes from."""
    return {
        "version": "3.5.0.Final",
        "connector": "postgresql",
        "name": "pagila",
        "ts_ms": 1_767_225_600_000 + lsn,
        "snapshot": "false",
        "db": "pagila",
        "sequence": f'["{lsn - 1}","{lsn}"]',
        "schema": "public",
        "table": "film",
        "txId": 700 + lsn,
        "lsn": lsn,
        **more,
    }
