"""What must not be lost: requests with their answers and costs, and runs, in SQLite or PostgreSQL."""

from twothirds.store.backup import back_up, restore
from twothirds.store.budgets import RunRow
from twothirds.store.check import StoredRequest
from twothirds.store.connection import sqlite_file, store_name
from twothirds.store.content import KEY_LENGTH, text_key
from twothirds.store.costs import Cost, Night, Totals
from twothirds.store.errors import DamagedStore, StoreError, StoreFull, StoreUnavailable
from twothirds.store.metrics import Sample, render
from twothirds.store.owners import new_owner
from twothirds.store.periods import EVER, Booked, Job
from twothirds.store.rates import Rate
from twothirds.store.requests import Claimed, Granted, Reply, Respondent, StoredAnswer, Wanted, identity_digest
from twothirds.store.runs import ActiveRun, RunState, short_id
from twothirds.store.schema import PROBE
from twothirds.store.store import Store
