"""Faults of the data tests of captured tables' values: too long, of no engine, alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.python.stack.test_planted_faults import DataTest, Fault, Lake


def texts_fit(test: DataTest, lake: Lake) -> Iterator[Fault]:
    for name, most in test.arguments["max_bytes"].items():
        # Two bytes each: it is bytes that are counted.
        text = f"repeat('é', {most // 2 + 1})"
        path = name.removeprefix("records.").split(".")
        value = lake.with_field(test.relation, path, text)
        yield lake.added(test.relation, {path[0]: value})


def moments_fit(test: DataTest, lake: Lake) -> Iterator[Fault]:
    infinite = {
        "days": "-622191234",
        "millis": "9223372036825200",
        "micros": "9223372036825200000",
        "zoned": "'infinity'",
    }
    within = test.arguments.get("within")
    for name, unit in test.arguments["columns"].items():
        path = [within, name] if within else [name]
        value = lake.with_field(test.relation, path, infinite[unit])
        yield lake.added(test.relation, {path[0]: value})


def text_keys_stay_apart(test: DataTest, lake: Lake) -> Iterator[Fault]:
    for name in test.arguments["key"]:
        yield replace(
            lake.added(test.relation, {name: "'A'"}),
            beside=lake.added(test.relation, {name: "'A '"}),
        )
