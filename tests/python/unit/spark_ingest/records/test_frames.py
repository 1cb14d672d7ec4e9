"""Which streams are decoded column by column, and which row by row."""

from __future__ import annotations

from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import combine, declared
from spark_ingest.avro.framing import JSON, STRING
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.records.frames import row_by_row
from tests.python.world.avro import record


def test_json_and_types_that_contain_themselves_are_decoded_row_by_row() -> None:
    flat = combine([WriterSchema(1, record(("a", "int")))])
    link = record(("next", ["null", "n.L"]), name="L")
    endless = combine([WriterSchema(1, record(("x", link)))])
    json, text = (declared(framing, StructType([])) for framing in (JSON, STRING))
    assert row_by_row(flat, None) is row_by_row(flat, text) is None
    assert row_by_row(json, None) == "its values are JSON"
    assert row_by_row(flat, json) == "its keys are JSON"
    assert row_by_row(endless, None) == "x of its values has a recursive type"
