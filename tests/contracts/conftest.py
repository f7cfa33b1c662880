"""What every store keeps, whichever database it is in: the same tests on SQLite and on PostgreSQL."""

from tests.integration.conftest import clock, postgres, store, store_url

__all__ = ["clock", "postgres", "store", "store_url"]
