"""Results of the benchmarks: kept in files, shown in docs/performance.md."""
