"""Label the examples that were not compared: whole rows, all features of an example together."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from flows.discover.findings import Progress
from flows.discover.preparation import Prepared
from flows.progress import Display
from models import Answer, Ballot, Feature, Labelled, Oracle, Panel

AT_ONCE = 8_192  # labels in one task at least: what is in flight is held in memory


def label_rest(
    prepared: Prepared,
    oracle: Oracle,
    progress: Progress,
    label: Callable[[Panel, list[Feature]], Labelled],
    on_answer: Callable[[Answer], None] = lambda _: None,
) -> list[Ballot]:
    """Put the features to the examples that were not compared: one ballot per feature, in their order.

    If something ends it, which `progress.message` then says, the ballots hold what was answered until then."""
    rest, votes = prepared.rest, prepared.settings.votes
    if rest:
        progress.drop_repeats()
    features = [one.feature for one in progress.known if not one.dropped]
    if not rest or not features or progress.message:
        return []
    every = [Ballot.empty(one.feature, len(rest)) for one in progress.known]  # those only looked at stay empty
    ballots = [ballot for ballot, one in zip(every, progress.known, strict=True) if not one.dropped]
    step = max(1, max(AT_ONCE, oracle.width) // (len(features) * votes))
    with prepared.display.counting(len(rest), "other examples labelled"):
        for first in range(0, len(rest), step):
            examples = rest[first : first + step]
            count = _counting(prepared.display, first, len(examples), len(features), on_answer)
            labelled = label(Panel(oracle, examples, votes, count), features)
            for ballot, part in zip(ballots, labelled.ballots, strict=True):
                ballot.join(first, part)
            progress.stop(labelled.stopped)
            if labelled.stopped is not None:
                break
    return every


def _counting(
    display: Display, first: int, examples: int, features: int, on_answer: Callable[[Answer], None]
) -> Callable[[Answer], None]:
    """Shows how far one task is."""
    answers = itertools.count(1)

    def count(answer: Answer) -> None:
        on_answer(answer)
        rows, more = divmod(next(answers), features)
        if not more:
            display.update(first + min(rows, examples), f"{features} features each")

    return count
