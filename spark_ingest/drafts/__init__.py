"""Generate dbt sources and models of new streams and captured tables."""
