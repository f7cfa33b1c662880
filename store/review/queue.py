"""The review queue, where questions wait for people: a repository for each subject in it."""

from __future__ import annotations

from store.review.items import Items, Waits
from store.review.leases import Leases
from store.review.mturk import MTurk
from store.review.outlook import Outlooks
from store.review.people import People
from store.review.records import Records
from store.review.rulings import Rulings
from store.review.training import Training
from store.review.votes import Votes
from store.review.withdrawals import Withdrawals
from store.transactions import Clock, Transactions


class Queue:
    """Questions, leases, votes and people. No acknowledged vote is lost, no person votes twice on a question, and no
    question gets more votes than it needs, even if any process crashes at any point."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        self.items = Items(transactions, clock)
        self.waits = Waits(transactions, clock)
        self.leases = Leases(transactions, clock)
        self.votes = Votes(transactions, clock)
        self.outlooks = Outlooks(transactions, clock)
        self.rulings = Rulings(transactions, clock)
        self.training = Training(transactions, clock)
        self.withdrawals = Withdrawals(transactions, clock)
        self.people = People(transactions, clock)
        self.records = Records(transactions, clock)
        self.mturk = MTurk(transactions, clock)
