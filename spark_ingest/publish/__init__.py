"""Publish the changed rows of marts to Kafka topics as Avro records."""
