"""The marts in a browser: live, read-only, without a JVM."""
