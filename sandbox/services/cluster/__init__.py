"""A Spark cluster, and the object store of its lake."""
