"""What every stream of a command shares: the lake and the services around it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import Connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.streaming.progress import Progress


@dataclass(frozen=True)
class Services:
    """A session on the lake, and who answers for Kafka, schemas and progress."""

    spark: SparkSession
    connections: Connections
    broker: Broker
    registry: SchemaRegistry
    progress: Progress
