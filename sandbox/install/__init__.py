"""Java parts and Spark's settings, fetched and written for this machine."""
