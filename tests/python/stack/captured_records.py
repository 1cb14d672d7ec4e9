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
_SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "connector", "type": "string"},
        {"name": "name", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {"name": "snapshot", "type": [_SNAPSHOT, "null"], "default": "false"},
        {"name": "db", "type": "string"},
        {"name": "sequence", "type": ["null", "string"], "default": None},
        {"name": "ts_us", "type": ["null", "long"], "default": None},
        {"name": "ts_ns", "type": ["null", "long"], "default": None},
        {"name": "schema", "type": "string"},
        {"name": "table", "type": "string"},
        {"name": "txId", "type": ["null", "long"], "default": None},
        {"name": "lsn", "type": ["null", "long"], "default": None},
        {"name": "xmin", "type": ["null", "long"], "default": None},
    ],
    "connect.name": "io.debezium.connector.postgresql.Source",
}
_TRANSACTION = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total_order", "type": "long"},
        {"name": "data_collection_order", "type": "long"},
    ],
    "connect.version": 1,
    "connect.name": "event.block",
}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal of ``decimal.handling.mode=precise``."""
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {
            "scale": str(scale),
            "connect.decimal.precision": str(precision),
        },
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
    {
        "name": "length",
        "type": ["null", {"type": "int", "connect.type": "int16"}],
        "default": None,
    },
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
        "type": meaning(
            "long", "io.debezium.time.MicroTimestamp", **{"connect.default": 0}
        ),
        "default": 0,
    },
]


def with_field(
    fields: list[dict[str, Any]], name: str, kind: Any
) -> list[dict[str, Any]]:
    """The fields with one more, or one of another type."""
    changed = {"name": name, "type": ["null", kind], "default": None}
    kept = [changed if field["name"] == name else field for field in fields]
    return kept if changed in kept else [*fields, changed]


def key_schema(topic: str, *names: str) -> dict[str, Any]:
    """The schema of a table's keys."""
    return {
        "type": "record",
        "name": "Key",
        "namespace": topic,
        "fields": [{"name": name, "type": "int"} for name in names],
        "connect.name": f"{topic}.Key",
    }


def envelope(topic: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a table's changes as the connector makes them."""
    row = {
        "type": "record",
        "name": "Value",
        "fields": fields,
        "connect.name": f"{topic}.Value",
    }
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": topic,
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": _SOURCE},
            {"name": "transaction", "type": ["null", _TRANSACTION], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
            {"name": "ts_us", "type": ["null", "long"], "default": None},
            {"name": "ts_ns", "type": ["null", "long"], "default": None},
        ],
        "connect.version": 2,
        "connect.name": f"{topic}.Envelope",
    }


def flattened(topic: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of rows with the connector's fields beside them."""
    added = {
        "__op": "string",
        "__db": "string",
        "__table": "string",
        "__schema": "string",
        "__lsn": "long",
        "__source_ts_ms": "long",
        "__source_sequence": "string",
        "__source_txId": "long",
        "__source_snapshot": _SNAPSHOT,
    }
    return {
        "type": "record",
        "name": "Value",
        "namespace": topic,
        "fields": [
            *fields,
            *(
                {"name": name, "type": ["null", kind], "default": None}
                for name, kind in added.items()
            ),
            {"name": "__deleted", "type": ["null", "string"], "default": None},
        ],
        "connect.name": f"{topic}.Value",
    }


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
