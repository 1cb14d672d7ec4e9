"""How fast records come from Kafka into a table, and what is lost on the way: us and our peers."""
