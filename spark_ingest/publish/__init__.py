"""What goes out: the changed rows of marts, as Avro records of Kafka topics."""
