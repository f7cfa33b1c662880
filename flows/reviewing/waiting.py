"""Wait in the terminal for what people answer."""

from __future__ import annotations

import time

from twothirds.flows.events import Events, Waiting
from twothirds.models import AnswersPending
from twothirds.store.review import Queue

POLL_SECONDS = 1.0
REGRET_SECONDS = 5.0  # after the last answer, in which it can be undone before the discovery goes on


def wait_for_people(queue: Queue, events: Events, pending: AnswersPending) -> None:
    """Return when all that is pending is answered; for an oracle without a queue, after a while."""
    events.say(str(pending))
    if not pending.items:
        time.sleep(60 * POLL_SECONDS)
        return
    total, told = len(pending.items), ""
    while still_open := queue.waits.open_count(pending.items):
        line = f"{total - still_open} of {total} questions answered, waiting for people"
        if line != told:
            events.emit(Waiting("people", told := line))
        time.sleep(POLL_SECONDS)
    while (left := REGRET_SECONDS - queue.waits.seconds_since_answer(pending.items)) > 0:
        time.sleep(min(left, POLL_SECONDS))
