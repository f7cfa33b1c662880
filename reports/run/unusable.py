"""Answers that nothing can be made of: how many, by which oracle, and why."""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from twothirds.reports.run.json_parts import JsonPart

MOST_REASONS = 12  # listed one by one, the most frequent first
MANY_LABELS = 50  # that are all answered alike: features that are worth naming are not so one-sided
COMPARISON, LABEL = "comparison", "label"


class UnusableReason(JsonPart):
    by: str
    kind: str  # of the questions: comparison or label
    verdict: str  # refused or unreadable
    reason: str
    answers: int


class OneAnswer(JsonPart):
    """An oracle that gave the same answer to every label."""

    by: str
    verdict: str  # yes or no
    labels: int

    def __str__(self) -> str:
        return f"{self.by} said {self.verdict} to all {self.labels:,} labels: it has told no example from another"


class UnusableAnswers(JsonPart):
    """Of the comparisons and votes on labels that were answered, those that were refused or unreadable."""

    comparisons: int
    labels: int
    unusable_comparisons: int
    unusable_labels: int
    reasons: list[UnusableReason]
    one_answer: list[OneAnswer] = Field(default_factory=list)

    @property
    def total(self) -> int:
        return self.unusable_comparisons + self.unusable_labels

    @property
    def too_many(self) -> bool:
        """More than half of the comparisons, or of the votes on labels."""
        return 2 * self.unusable_comparisons > self.comparisons or 2 * self.unusable_labels > self.labels

    def lines(self) -> list[str]:
        """In words; nothing where all is well."""
        lines = []
        if self.total:
            lines.append(
                f"{self.total:,} of {self.comparisons + self.labels:,} answers could not be used: {self.why()}"
            )
        return [*lines, *map(str, self.one_answer)]

    def why(self) -> str:
        oracles = list(dict.fromkeys(reason.by for reason in self.reasons))
        return "; ".join(
            ", ".join(
                f"{reason.answers:,} {reason.kind}{'' if reason.answers == 1 else 's'} {reason.verdict}"
                + (f" ({reason.reason})" if reason.reason != reason.verdict else "")
                for reason in self.reasons
                if reason.by == oracle
            )
            + f", by {oracle}"
            for oracle in oracles
        )


class UnusableCounts:
    """Counts answers; two tallies can be added."""

    def __init__(self) -> None:
        self.comparisons = 0
        self.labels = 0
        self._unusable: Counter[tuple[str, str, str, str]] = Counter()
        self._verdicts: Counter[tuple[str, str]] = Counter()  # by whom, yes or no

    def count(self, by: str, kind: str, verdict: str, note: str, answers: int = 1) -> None:
        """`note` says why, where the verdict is refused or unreadable."""
        if not answers:
            return
        if kind == LABEL:
            self.labels += answers
        else:
            self.comparisons += answers
        if kind == LABEL and verdict in ("yes", "no"):
            self._verdicts[by, verdict] += answers
        if verdict in ("refused", "unreadable"):
            self._unusable[by, kind, verdict, " ".join(note.split()) or verdict] += answers

    def add(self, other: UnusableCounts) -> None:
        self.comparisons += other.comparisons
        self.labels += other.labels
        self._unusable += other._unusable
        self._verdicts += other._verdicts

    def summary(self) -> UnusableAnswers:
        of_kind: Counter[str] = Counter()
        for (_, kind, _, _), answers in self._unusable.items():
            of_kind[kind] += answers
        one_sided = [
            OneAnswer(by=by, verdict=verdict, labels=labels)
            for (by, verdict), labels in self._verdicts.items()
            if labels >= MANY_LABELS and not self._verdicts[by, "no" if verdict == "yes" else "yes"]
        ]
        return UnusableAnswers(
            comparisons=self.comparisons,
            labels=self.labels,
            unusable_comparisons=of_kind[COMPARISON],
            unusable_labels=of_kind[LABEL],
            reasons=self._reasons(),
            **({"one_answer": one_sided} if one_sided else {}),
        )

    def _reasons(self) -> list[UnusableReason]:
        """The most frequent ones; the others together, by oracle, kind and verdict."""
        ranked = sorted(self._unusable.items(), key=lambda item: (-item[1], item[0]))
        counted = Counter(dict(ranked[:MOST_REASONS]))
        for (by, kind, verdict, _), answers in ranked[MOST_REASONS:]:
            counted[by, kind, verdict, "for other reasons"] += answers
        return [
            UnusableReason(by=by, kind=kind, verdict=verdict, reason=reason, answers=answers)
            for (by, kind, verdict, reason), answers in counted.items()
        ]
