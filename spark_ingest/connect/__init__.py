"""Kafka and the schema registry: the profile, the clients, and why a server refuses one."""
