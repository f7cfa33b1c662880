"""Answers, claims, charges, runs and costs."""

from store.ledger.answers import StoredAnswers
from store.ledger.check import Check
from store.ledger.claims import Claims
from store.ledger.costs import Cost, Costs, Totals
from store.ledger.expiry import end_all_claims
from store.ledger.granting import Claimed, Request
from store.ledger.housekeeping import Housekeeping
from store.ledger.keys import KEY_LENGTH, identity_digest, key_prefix, ledger_key
from store.ledger.owners import is_dead, new_owner
from store.ledger.rates import Rate, Rates
from store.ledger.runs import ActiveRun, Runs, short_id
from store.ledger.settlements import Settlements
from store.packed.check import StoredAnswer
from store.packed.content import AnswerRecord
