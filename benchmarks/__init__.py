"""What docs/benchmarks.md quotes, each runnable alone: `python -m benchmarks.NAME`."""
