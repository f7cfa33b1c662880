"""The algorithm: pure Python and numpy, no I/O, no Prefect."""
