"""Land every Kafka record in a bronze Iceberg table, exactly once, or in quarantine."""
