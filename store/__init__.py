"""What must not be lost: answers, charges, claims and runs, in SQLite or PostgreSQL."""

from store.errors import StoreError
from store.ledger.answers import AnswerRecord
from store.ledger.claims import Claimed, Request
from store.ledger.costs import Cost
from store.ledger.owners import new_owner
from store.ledger.rates import Rate
from store.ledger.runs import ActiveRun
from store.schema import PROBE
from store.store import Store

__all__ = [
    "PROBE",
    "ActiveRun",
    "AnswerRecord",
    "Claimed",
    "Cost",
    "Rate",
    "Request",
    "Store",
    "StoreError",
    "new_owner",
]
