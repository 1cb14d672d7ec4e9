"""Iceberg through Spark: the session, tables and their changes."""
