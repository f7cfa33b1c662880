"""The paper's claims, tables and figures on simulated crowds: `python -m benchmarks.paper` writes docs/replication."""
