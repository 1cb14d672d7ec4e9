"""Avro schemas and framings: the columns for a topic's writer schemas, and schema ids."""
