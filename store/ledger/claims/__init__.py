"""Claims: who may ask a question now, and what became of those who wanted to."""

from store.ledger.claims.claims import Claims
from store.ledger.claims.granting import Claimed, Request
