"""Unusable answers are counted by oracle and reason, and reported in one line."""

from __future__ import annotations

from pathlib import Path

from twothirds.flows.cli.errors import explain
from twothirds.models import AnswersUnusable
from twothirds.reports.run.unusable import MANY_LABELS, MOST_REASONS, UnusableCounts


def vote_counts(usable: int, **unusable: int) -> UnusableCounts:
    made = UnusableCounts()
    for number in range(usable):
        made.count("openai:m", "label", "yes" if number % 2 else "no", "")
    for reason, times in unusable.items():
        for _ in range(times):
            made.count("openai:m", "label", "refused", reason)
    return made


def test_counts_are_reported_by_oracle_and_reason() -> None:
    made = vote_counts(90, declined=6)
    made.count("openai:m", "comparison", "unreadable", "an empty\nreply")
    made.count("vlm:n", "label", "unreadable", "")
    summary = made.summary()
    assert (summary.comparisons, summary.labels) == (1, 97)
    assert (summary.unusable_comparisons, summary.unusable_labels, summary.total) == (1, 7, 8)
    assert summary.lines() == [
        "8 of 98 answers could not be used: 6 labels refused (declined), 1 comparison unreadable (an empty reply), "
        "by openai:m; 1 label unreadable, by vlm:n",
    ]


def test_nothing_is_said_where_all_is_well() -> None:
    assert vote_counts(10).summary().lines() == []


def test_an_oracle_that_gives_one_answer_to_every_label_is_reported() -> None:
    made, other = UnusableCounts(), vote_counts(MANY_LABELS)
    for _ in range(MANY_LABELS):
        made.count("vlm:n", "label", "no", "")
    made.add(other)
    assert made.summary().lines() == ["vlm:n said no to all 50 labels: it has told no example from another"]
    assert "one_answer" not in other.summary().to_json()
    made.count("vlm:n", "label", "yes", "")
    assert made.summary().lines() == []


def test_more_than_half_of_either_kind_is_too_many() -> None:
    assert not vote_counts(50, declined=50).summary().too_many
    assert vote_counts(49, declined=50).summary().too_many
    few = vote_counts(1000)
    few.count("m", "comparison", "refused", "")
    assert few.summary().too_many
    assert not UnusableCounts().summary().too_many


def test_tallies_are_added_and_rare_reasons_are_reported_together() -> None:
    whole, part = vote_counts(5, a=2), vote_counts(5, **{f"reason {number}": 1 for number in range(40)})
    whole.add(part)
    reasons = whole.summary().reasons
    assert len(reasons) == MOST_REASONS + 1
    assert sum(one.answers for one in reasons) == whole.summary().total == 42
    assert reasons[-1].reason == "for other reasons"


def test_a_run_of_which_most_is_unusable_ends_with_status_1_and_the_remedy() -> None:
    status, line = explain(AnswersUnusable.leaving(Path("runs/x"), vote_counts(0, declined=3).summary().lines()[0]))
    assert status == 1
    assert "3 of 3 answers could not be used" in line
    assert "runs/x" in line
    assert "--retry-unusable" in line
