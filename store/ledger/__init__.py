"""Answers, claims, charges, runs and costs."""

from store.ledger.answers import KEY_LENGTH, StoredAnswers, identity_digest, key_prefix, ledger_key
from store.ledger.check import Check, StoredAnswer
from store.ledger.claims import Claimed, Claims, Request
from store.ledger.costs import Cost, Costs, Night, Totals
from store.ledger.expiry import end_all_claims, is_dead, new_owner
from store.ledger.housekeeping import Housekeeping
from store.ledger.periods import Booked, Job
from store.ledger.rates import Rate, Rates
from store.ledger.runs import ActiveRun, Runs, RunState, short_id
from store.ledger.settlements import Settlements
from store.packed.content import AnswerRecord
