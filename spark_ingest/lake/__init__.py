"""The Iceberg lake: session, tables, leases and the commit log."""
