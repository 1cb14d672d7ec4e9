"""What a batch asks the schema registry for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_ingest.records.bronze_rows import current_schemas


def test_a_batch_of_a_captured_table_asks_for_each_subject_once() -> None:
    """Fails when the comparison with the described columns asks again."""
    asked: list[str] = []
    schema: Any = SimpleNamespace(usable=True, incompatible={})

    def ask(part: str) -> Any:
        asked.append(part)
        return schema

    schemas: Any = SimpleNamespace(
        hold=lambda _spark: None,
        value=lambda: ask("value"),
        key=lambda: ask("key"),
        stream=SimpleNamespace(ingest=SimpleNamespace(captured={})),
    )
    spark: Any = None

    assert current_schemas(spark, schemas) == (schema, schema)
    assert asked == ["value", "key"]
