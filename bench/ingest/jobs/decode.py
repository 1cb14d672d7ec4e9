"""The upper limit of Spark: read from Kafka, decode with one schema, no sink.

usage: python -m bench.ingest.jobs.decode SERVERS TOPIC SCHEMA
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from bench.ingest.jobs import marks
from bench.ingest.jobs.kafka_reader import options
from spark_ingest.lake.session import open_session


def main(servers: str, topic: str, schema: str) -> None:
    """Read the whole topic once.

    Args:
        servers: The broker.
        topic: What to read.
        schema: The file of the schema that values are decoded with.
    """
    spark = open_session()
    fixed = Path(schema).read_text()
    marks.begin()
    records = spark.read.format("kafka").options(**options(servers, topic)).load()
    payload = F.expr("substring(value, 6)")
    rows = records.select(from_avro(payload, fixed, {"mode": "PERMISSIVE"}).alias("value")).select(
        "value.*"
    )
    rows.write.format("noop").mode("overwrite").save()
    marks.end()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
