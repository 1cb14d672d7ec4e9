"""Checks in Java that bytes are exactly one value of a schema, before they are decoded.

Spark's decoder accepts invalid bytes: a truncated number, a boolean that is neither 0 nor 1, a
string that is not UTF-8. Spark has no function to check them, so the check is a Java class,
``AvroCheck.java``.
"""

from __future__ import annotations

import json

from pyspark.sql import Column, SparkSession

from spark_ingest.avro.reader_schemas import Reading
from spark_ingest.avro.schema import AvroSchema
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason
from spark_ingest.records import java_checks

# Prefix of a reason for trailing bytes, followed by the offset after the value.
LEFT_OVER = "+"

WALK = ("AvroNode", "AvroWalk")
"""The Java classes that walk over Avro bytes."""


def check(column: str, begin: int, writer: AvroSchema) -> Column:
    """Why bytes are not exactly one value of a schema; null if they are, or for null.

    ``column`` is the name of the column, ``begin`` the number of bytes before the value;
    ``writer`` is self-contained.

    Returns:
        A reason with the field's name; or ``LEFT_OVER`` and the offset after the value, if it
        is complete and trailing bytes follow.
    """
    return java_checks.checked((*WALK, "AvroCheck"), column, json.dumps(writer), begin)


def schema_problem(reading: Reading) -> str | None:
    """Why Java's Avro or Spark rejects a version's schemas; None if they accept them."""
    jvm = Jvm(SparkSession.active()).packages
    avro, spark_avro = jvm.org.apache.avro, jvm.org.apache.spark.sql.avro
    try:
        avro.Schema.Parser().parse(json.dumps(reading.writer))
        reader = avro.Schema.Parser().parse(json.dumps(reading.reader))
        spark_avro.SchemaConverters.toSqlType(reader, True, "", -1)
    except JAVA_ERRORS as error:
        return java_reason(error)
    return None
