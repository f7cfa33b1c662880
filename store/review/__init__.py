"""The queue of questions for people: items, leases, votes, people."""

from store.review.attention import page_of_checks
from store.review.items import (
    CHECKED,
    DATASET,
    EXEMPLARS,
    VOTE,
    ReviewQuestion,
    Standing,
    Vote,
    digests_in,
    digests_shown,
)
from store.review.leases import LeasedQuestion, LeaseTerms
from store.review.mturk import COLLECTED, PLANNED, POSTED, Hit, unconfirmed
from store.review.outlook import FINISHED, PAUSED, QueueOutlook
from store.review.people import ADMIN, REVIEWER, REVOKED, WORKER, Invitation, Person
from store.review.queue import Queue
from store.review.records import QueueProgress
from store.review.rulings import DisputedLabel
from store.review.votes import MOST_PAID_SECONDS, UNSURE
from store.review.withdrawals import Withdrawal
