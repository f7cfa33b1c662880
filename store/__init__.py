"""What must not be lost: answers, charges, claims and runs, in SQLite or PostgreSQL."""

from store.backup import backup, restore
from store.connection import sqlite_file, store_name
from store.errors import DamagedStore, StoreError
from store.ledger.answers import AnswerRecord
from store.ledger.claims import Request
from store.ledger.costs import Cost
from store.ledger.owners import new_owner
from store.ledger.rates import Rate
from store.ledger.runs import ActiveRun
from store.schema import PROBE
from store.store import Store
