"""Data files of bronze tables: Parquet by Arrow C++, put where and as Iceberg says."""
