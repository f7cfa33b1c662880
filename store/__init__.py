"""What must not be lost: answers, charges, claims and runs, in SQLite or PostgreSQL."""

from store.backup import back_up, restore
from store.connection import sqlite_file, store_name
from store.errors import DamagedStore, StoreError, StoreFull, StoreUnavailable
from store.ledger import ActiveRun, AnswerRecord, Booked, Claimed, Cost, Job, Night, Rate, Request, new_owner, short_id
from store.ledger.periods import EVER
from store.metrics import Sample, render
from store.schema import PROBE
from store.store import Store
