"""Streams at work: batches, where they go on, trouble, and what people see of it."""
