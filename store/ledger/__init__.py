"""Answers, claims, charges, runs and costs."""

from store.ledger.answers import KeptAnswers, identity_digest, ledger_key
from store.ledger.check import Check, StoredAnswer
from store.ledger.claims import Claims
from store.ledger.costs import Costs, Totals
from store.ledger.expiry import end_all_claims
from store.ledger.owners import is_dead
from store.ledger.rates import Rates
from store.ledger.runs import Runs
