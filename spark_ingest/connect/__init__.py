"""Kafka and the schema registry: the profile, the clients, and diagnosis of rejected ones."""
