"""The whole way at once: the demo, the live pipeline, and SQL on the lake."""
