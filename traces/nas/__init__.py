"""The NAS Parallel Benchmarks by formula: traffic, traces, and traces with their loops kept."""
