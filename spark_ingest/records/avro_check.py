"""The check that bytes are exactly one value of a schema, in Java, before they are decoded.

Spark's decoder gives a value for bytes that do not say it: a cut number, a boolean that is
neither, text that is not UTF-8. No function of Spark's own sees these bytes, so the check is
a class beside it, ``AvroCheck.java``.
"""

from __future__ import annotations

import json

from pyspark.sql import Column, SparkSession

from spark_ingest.avro.reader_schemas import Reading
from spark_ingest.avro.schema import AvroSchema
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason
from spark_ingest.records import java_checks

# Begins a reason that is the place behind a whole value: the others are bytes left over.
LEFT_OVER = "+"

WALK = ("AvroNode", "AvroWalk")
"""The classes in Java that go over Avro's bytes."""


def check(column: str, begin: int, writer: AvroSchema) -> Column:
    """Why bytes are not exactly one value of a schema; null where they are, or are null.

    ``column`` is the name of the column that ends with the value, ``begin`` how many bytes
    stand before it; ``writer`` is complete in itself.

    Returns:
        A text that names the field; or ``LEFT_OVER`` and the place behind the value, where
        that is whole and bytes are left over.
    """
    return java_checks.checked((*WALK, "AvroCheck"), column, json.dumps(writer), begin)


def schema_problem(reading: Reading) -> str | None:
    """Why Java's Avro or Spark rejects a version's schemas; None where they take them."""
    jvm = Jvm(SparkSession.active()).packages
    avro, spark_avro = jvm.org.apache.avro, jvm.org.apache.spark.sql.avro
    try:
        avro.Schema.Parser().parse(json.dumps(reading.writer))
        reader = avro.Schema.Parser().parse(json.dumps(reading.reader))
        spark_avro.SchemaConverters.toSqlType(reader, True, "", -1)
    except JAVA_ERRORS as error:
        return java_reason(error)
    return None
