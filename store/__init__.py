"""What must not be lost: answers, charges, claims and runs, in SQLite or PostgreSQL."""

from store.answers import AnswerRecord, KeptAnswer
from store.claims import Claimed, Request
from store.costs import Cost
from store.errors import StoreError
from store.facade import Store
from store.owners import new_owner
from store.rates import Rate
from store.schema import PROBE

__all__ = [
    "PROBE",
    "AnswerRecord",
    "Claimed",
    "Cost",
    "KeptAnswer",
    "Rate",
    "Request",
    "Store",
    "StoreError",
    "new_owner",
]
