"""Put the same questions to every oracle: labels, comparisons, and a discovery of its own if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from twothirds.flows.compare.preparation import ComparedOracle, PreparedComparison
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.remaining import LabelTask
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.oracles import recorded_votes
from twothirds.flows.run_context import RunEntry, run_context
from twothirds.models import (
    MICRO,
    Answer,
    AnswersPending,
    Asks,
    CachedOracle,
    Compare,
    Elicited,
    Feature,
    LabelBatch,
    Members,
    Money,
    OracleError,
    OracleUnavailable,
    Votes,
    batches_of,
)
from twothirds.reports.compare import Discovered, Named, Rater

CompareTask = Callable[[Asks, list[Compare]], Elicited]


@dataclass
class Polled:
    """All votes of an oracle, and what all of its answers have cost, those from the store included."""

    votes: Votes
    answers: int = 0
    cost: Money = 0
    seconds: float = 0.0

    def count(self, answer: Answer) -> None:
        self.answers += 1
        self.cost += answer.cost
        self.seconds += answer.seconds


@dataclass
class Asking:
    """One comparison in progress. An oracle that must wait for people or is unavailable is noted; the others go on."""

    prepared: PreparedComparison
    run_id: str
    compare: CompareTask
    label: LabelTask
    pending: list[AnswersPending] = field(default_factory=list)
    stopped: dict[str, OracleError] = field(default_factory=dict)  # by oracle why it was not asked all

    def features(self) -> tuple[tuple[Feature, ...], dict[int, Discovered]]:
        """What is labelled, and the discoveries that were made: by the first oracle where nothing was given, and by
        all of them on request."""
        prepared = self.prepared
        discovered: dict[int, Discovered] = {}
        features = prepared.features
        for asked in prepared.oracles:
            needed = features is None and asked.index == 0
            if not (needed or prepared.settings.own_discovery):
                continue
            prepared.events.say(f"{asked.name} discovers features")
            try:
                outcome = self._discover(asked)
            except (AnswersPending, OracleUnavailable) as stopped:
                if needed:
                    raise
                self._note(asked, stopped)
                continue
            if outcome.progress.stopped is StopReason.UNAVAILABLE:
                self._note(asked, OracleUnavailable(outcome.progress.message))
            discovered[asked.index] = _discovered(outcome)
            if needed:
                features = tuple(finding.feature for finding in outcome.progress.findings)
        return features or (), discovered

    def _discover(self, asked: ComparedOracle) -> Outcome:
        discovery = self.prepared.discovery(asked)
        discovery.folder.mkdir(parents=True, exist_ok=True)
        run_id = str(uuid5(NAMESPACE_URL, f"{self.run_id}/{asked.index}/discovery"))
        return run_discovery(discovery, run_id=run_id, compare=self.compare, label=self.label)

    def rater(self, asked: ComparedOracle, features: tuple[Feature, ...], discovered: Discovered | None) -> Rater:
        prepared, paid = self.prepared, 0
        if (table := recorded_votes(asked.oracle)) is not None:  # nothing is spent now
            compared, polled = self._compared(table, asked), self._polled(table, asked, features)
        else:
            with self._recording(asked) as recorded:
                compared, polled = self._compared(recorded, asked), self._polled(recorded, asked, features)
            paid = recorded.ledger.cost
        places = len(prepared.people_rows) if asked.people else len(prepared.examples)
        if warning := asked.oracle.prepare(prepared.examples).warning:
            prepared.events.say(warning)
        return Rater(
            asked.name,
            asked.people,
            asked.oracle.identity.to_json(),
            polled.votes.sheet,
            wanted=len(features) * places * asked.votes,
            answers=polled.answers,
            usd=polled.cost / MICRO,
            paid_usd=paid / MICRO,
            seconds=polled.seconds,
            stopped=str(self.stopped.get(asked.name, "")),
            lost=self._is_lost(asked),
            compared=compared,
            discovered=discovered,
            warning=warning,
        )

    @contextmanager
    def _recording(self, asked: ComparedOracle) -> Iterator[CachedOracle]:
        """The oracle with cache, budget and ledger, for as long as its part of the comparison takes."""
        prepared, store = self.prepared, self.prepared.store
        run_id = str(uuid5(NAMESPACE_URL, f"{self.run_id}/{asked.index}"))
        scope, budget = prepared.scope(asked), prepared.settings.budget_micro
        entry = RunEntry(
            flow="compare",
            name=prepared.folder.name,
            scope=scope,
            dataset=prepared.dataset.name,
            members=Members.alone(asked.oracle),
            settings=prepared.settings,
            budget=budget,
            retry_unusable=prepared.settings.retry_unusable,
            job=prepared.job,
        )
        with run_context(store, run_id, entry, prepared.events) as context:
            yield CachedOracle(asked.oracle, context.ledger)
            stopped, reason = self.stopped.get(asked.name), "done"
            if stopped is not None:
                reason = str(StopReason.UNAVAILABLE if self._is_lost(asked) else StopReason.BUDGET)
                context.record.message = str(stopped)
            context.record.status = "waiting" if self.pending else reason

    def _compared(self, oracle: Asks, asked: ComparedOracle) -> tuple[Named, ...]:
        if not self.prepared.questions:
            return ()
        elicited = self.compare(oracle, self.prepared.questions)
        self._note(asked, elicited.stopped)
        return tuple(map(_named, elicited.answers))

    def _polled(self, oracle: Asks, asked: ComparedOracle, features: tuple[Feature, ...]) -> Polled:
        prepared = self.prepared
        rows = prepared.people_rows if asked.people else list(range(len(prepared.examples)))
        examples = [prepared.examples[row] for row in rows]
        polled = Polled(Votes.empty(features, len(prepared.examples), asked.votes))
        total = len(features) * len(rows) * asked.votes

        def count(answer: Answer) -> None:
            polled.count(answer)
            show(polled.answers, asked.name)

        with prepared.events.counting(total, "votes") as show:
            for part in batches_of(examples, len(features), asked.votes):
                batch = LabelBatch(examples[part], features, asked.votes, every=True, wanted=False, on_answer=count)
                votes = self.label(oracle, batch)
                polled.votes.add(votes, rows[part])
                self._note(asked, votes.stopped)
                if votes.stopped is not None and not isinstance(votes.stopped, AnswersPending):
                    break
        return polled

    def _is_lost(self, asked: ComparedOracle) -> bool:
        return isinstance(self.stopped.get(asked.name), OracleUnavailable)

    def _note(self, asked: ComparedOracle, stopped: OracleError | None) -> None:
        if isinstance(stopped, AnswersPending):
            self.pending.append(stopped)
        elif stopped is not None:
            self.stopped.setdefault(asked.name, stopped)


def waits_for(pending: list[AnswersPending]) -> AnswersPending:
    """All that is waited for as one."""
    items = [item for waiting in pending for item in getattr(waiting, "items", ())]
    return AnswersPending(str(pending[-1]), items=items)


def _named(answer: Answer | None) -> Named:
    if answer is None:
        return Named("missing")
    return Named(answer.verdict.value, answer.feature.name if answer.feature else "", answer.shown)


def _discovered(outcome: Outcome) -> Discovered:
    progress = outcome.progress
    answers = [answer for _, answer in progress.asked]
    answers += [answer for finding in progress.findings for answer in finding.votes]
    labels = [finding.labels for finding in progress.findings]
    return Discovered(
        tuple(finding.feature.name for finding in progress.findings),
        np.stack(labels) if labels else np.zeros((0, len(outcome.rows)), np.int8),
        progress.interesting_distinct,
        progress.queries,
        sum(answer.cost for answer in answers) / MICRO,
        sum(answer.seconds for answer in answers),
        progress.g,
        tuple(progress.g_curve),
        str(progress.stopped),
    )
