"""Avro schemas and framings: which columns a topic's writers need, and how bytes name them."""
