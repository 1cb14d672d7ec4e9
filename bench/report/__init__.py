"""Results of the benchmarks: stored in files, published in docs/performance.md."""
