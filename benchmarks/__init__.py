"""One tool: what docs/results.md quotes."""
