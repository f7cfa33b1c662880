"""Prefect: servers of our own, and runs that go on when the server is lost."""
