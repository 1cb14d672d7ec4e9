"""The usual job: one fixed schema, plain Parquet files. It loses bad records and new fields.

usage: python -m bench.ingest.jobs.careless SERVERS TOPIC SCHEMA FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from bench.ingest.jobs import marks
from bench.ingest.jobs.kafka_reader import options
from spark_ingest.lake.session import open_session

# The same batch size as Millrace, with the same heap.
_BATCH_RECORDS = 2_500_000


def main(servers: str, topic: str, schema: str, folder: str) -> None:
    """Read the whole topic once.

    Args:
        servers: The broker.
        topic: What to read.
        schema: The file of the schema that all values are decoded with.
        folder: For the files and the checkpoint.
    """
    spark = open_session()
    fixed = Path(schema).read_text()
    marks.begin()
    records = (
        spark.readStream.format("kafka")
        .options(**options(servers, topic))
        .option("maxOffsetsPerTrigger", _BATCH_RECORDS)
        .load()
    )
    # Not FAILFAST: the first bad record would fail the job on every start.
    payload = F.expr("substring(value, 6)")
    rows = records.select(from_avro(payload, fixed, {"mode": "PERMISSIVE"}).alias("value")).select(
        "value.*"
    )
    query = (
        rows.writeStream.format("parquet")
        .option("path", f"file:{folder}/files")
        .option("checkpointLocation", f"file:{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    marks.end()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
