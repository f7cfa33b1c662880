"""After a discovery on a subset: the features found there, put to the examples that were not compared."""

from __future__ import annotations

from collections.abc import Callable

from flows.display import display
from flows.loop import Progress
from flows.preparation import Prepared
from models.oracle import AnswersPending, Feature, Oracle
from models.voting import Ballot, Labelled, Panel


def label_rest(
    prepared: Prepared, oracle: Oracle, progress: Progress, label: Callable[[Panel, list[Feature]], Labelled]
) -> list[Ballot]:
    """One ballot per feature, in their order; fewer if something ends it, which `progress.message` then says."""
    ballots: list[Ballot] = []
    if not prepared.rest or progress.message:
        return ballots
    panel = Panel(oracle, prepared.rest, prepared.settings.votes)
    with display().counting(len(progress.findings), f"features put to the other {len(prepared.rest):,} examples"):
        for place, finding in enumerate(progress.findings, start=1):
            labelled = label(panel, [finding.feature])
            if isinstance(labelled.stopped, AnswersPending):
                raise labelled.stopped
            ballots += labelled.ballots
            display().update(place, finding.feature.name)
            if labelled.stopped is not None:
                progress.stop(labelled.stopped)
                break
    return ballots
