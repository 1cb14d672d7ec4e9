"""Decodes and validates Kafka records, and converts them to rows of bronze."""
