"""What must not be lost: requests with their answers and costs, and runs, in SQLite or PostgreSQL."""

from twothirds.store.backup import back_up, restore
from twothirds.store.content import KEY_LENGTH, text_key
from twothirds.store.costs import Cost, Night, Totals
from twothirds.store.engine import sqlite_file, store_name
from twothirds.store.errors import DamagedStore, StoreError, StoreFull, StoreUnavailable
from twothirds.store.maintenance import StoredRequest
from twothirds.store.metrics import Sample, render
from twothirds.store.owners import new_owner
from twothirds.store.rates import Rate, Rates
from twothirds.store.requests import Claimed, Granted, Reply, Respondent, StoredAnswer, Wanted, identity_digest
from twothirds.store.runs import EVER, ActiveRun, Booked, Job, RunRow, RunState, short_id
from twothirds.store.schema import PROBE
from twothirds.store.store import Store
