"""The queue of questions for people: questions, leases, votes, people."""

from __future__ import annotations

from twothirds.store.engine import Clock, Transactions
from twothirds.store.review.leases import LeasedQuestion, Leases, LeaseTerms, page_of_checks
from twothirds.store.review.mturk import COLLECTED, PLANNED, POSTED, Hit, MTurk, unconfirmed
from twothirds.store.review.people import ADMIN, EDITOR, REVIEWER, REVOKED, Invitation, People, Person
from twothirds.store.review.quality import DisputedLabel, Quality
from twothirds.store.review.questions import (
    CHECKED,
    DATASET,
    EXEMPLARS,
    VOTE,
    Questions,
    ReviewQuestion,
    Standing,
    Vote,
    Waits,
    digests_in,
    digests_shown,
)
from twothirds.store.review.records import FINISHED, PAUSED, QueueOutlook, QueueProgress, Records
from twothirds.store.review.votes import MOST_PAID_SECONDS, UNSURE, Votes, Withdrawal


class Queue:
    """Questions, leases, votes and people. No acknowledged vote is lost, no person votes twice on a question, and no
    question gets more votes than it needs, even if any process crashes at any point."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        self.questions = Questions(transactions, clock)
        self.waits = Waits(transactions, clock)
        self.leases = Leases(transactions, clock)
        self.votes = Votes(transactions, clock)
        self.quality = Quality(transactions, clock)
        self.people = People(transactions, clock)
        self.records = Records(transactions, clock)
        self.mturk = MTurk(transactions, clock)
