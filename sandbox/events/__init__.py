"""Events to Kafka: made up or read from files, encoded, sent."""
