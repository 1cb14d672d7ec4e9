"""The Spark session and the services that all streams of a command share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import Connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.streaming.progress import Progress


@dataclass(frozen=True)
class Services:
    """The Spark session, and the clients of Kafka, schema registry and progress."""

    spark: SparkSession
    connections: Connections
    broker: Broker
    registry: SchemaRegistry
    progress: Progress
