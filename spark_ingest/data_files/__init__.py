"""Writes data files of bronze tables: Parquet by Arrow C++, at locations from Iceberg."""
