"""What must not be lost: requests with their answers and costs, and runs, in SQLite or PostgreSQL."""

from store.backup import back_up, restore
from store.budgets import RunRow
from store.check import StoredRequest
from store.connection import sqlite_file, store_name
from store.content import KEY_LENGTH, text_key
from store.costs import Cost, Night, Totals
from store.errors import DamagedStore, StoreError, StoreFull, StoreUnavailable
from store.metrics import Sample, render
from store.owners import new_owner
from store.periods import EVER, Booked, Job
from store.rates import Rate
from store.requests import Claimed, Granted, Reply, Respondent, StoredAnswer, Wanted, identity_digest
from store.runs import ActiveRun, RunState, short_id
from store.schema import PROBE
from store.store import Store
