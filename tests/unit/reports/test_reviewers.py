"""What answers tell about the people who gave them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from twothirds.reports.reviewers import QualityTerms, Remark, ReviewerQuality, csv_lines, quality_of


def vote(by: str, item: int, verdict: str = "yes", **other: Any) -> dict[str, Any]:
    row = {
        "id": item,
        "item": item,
        "queue": "main",
        "kind": "label",
        "question": {"feature": ["beard", ""], "example": f"d{item}"},
        "ids": [f"e{item}"],
        "expected": None,
        "by": by,
        "purpose": "vote",
        "slot": 0,
        "state": "given",
        "answer": {"verdict": verdict},
        "seconds": 2.0,
        "cost": 1000,
        "answered_at": 100.0,
    }
    return row | other


def warnings(quality: ReviewerQuality) -> list[tuple[str, Remark]]:
    return [(one.name, warning) for one in quality.reviewers for warning in one.warnings]


def test_a_person_agrees_with_the_majority_of_the_others() -> None:
    rows = [vote(by, item) for by in ("ann", "bob") for item in range(10)]
    rows += [vote("cyd", item, "no" if item < 4 else "yes") for item in range(10)]
    ann, bob, cyd = quality_of(rows, {}).reviewers
    assert cyd.agreement == pytest.approx(0.6)
    assert ann.agreement == bob.agreement == 1.0, "where the others are divided, nobody is wrong"
    assert (ann.answers, ann.cost, ann.seconds) == (10, 10_000, 2.0)


def test_checks_are_judged_by_what_is_known_or_by_what_all_others_say() -> None:
    rows = [
        vote("ann", 1, "yes", purpose="check", expected="yes"),
        vote("ann", 2, "yes", purpose="check", expected="no"),
        vote("ann", 3, "no", purpose="check"),
        vote("ann", 4, "no", purpose="check"),
    ]
    (ann,) = quality_of(rows, {3: "yes"}).reviewers
    assert ann.checks == [True, False, False]
    assert ann.warnings == [Remark("checks", {"passed": 1, "checks": 3})]
    assert warnings(quality_of(rows, {3: "yes"}, QualityTerms(pass_mark=0.3))) == []


def test_a_repeated_question_shows_whether_somebody_is_consistent() -> None:
    rows = [vote("ann", 1, "yes"), vote("ann", 2, "no")]
    rows += [vote("ann", 1, "yes", purpose="repeat"), vote("ann", 2, "yes", purpose="repeat")]
    (ann,) = quality_of(rows, {}).reviewers
    assert ann.consistency == 0.5
    assert ann.answers == 2, "a repetition is no vote"


def test_answers_that_are_too_fast_are_remarked_upon() -> None:
    hasty = [vote("ann", item, seconds=0.2) for item in range(12)]
    assert warnings(quality_of(hasty, {})) == [("ann", Remark("labels fast", {"seconds": 0.2}))]
    assert warnings(quality_of(hasty[:11], {})) == []
    compared = [vote("bob", item, kind="two-of-three", seconds=1.0) for item in range(12)]
    assert warnings(quality_of(compared, {}))[0][1] == Remark("compares fast", {"seconds": 1.0})


def test_always_the_same_answer_is_remarked_upon_only_where_others_differ() -> None:
    always = [vote("ann", item, "no") for item in range(20)]
    mixed = [vote("bob", item, "yes" if item % 2 else "no") for item in range(20)]
    assert warnings(quality_of(always + mixed, {})) == [("ann", Remark("always no"))]
    rare = [vote("bob", item, "no") for item in range(20)]
    assert warnings(quality_of(always + rare, {})) == []


def test_withdrawn_late_and_skipped_answers_count_for_nothing() -> None:
    rows = [vote("ann", n, state=state) for n, state in enumerate(("withdrawn", "late", "skipped"))]
    quality = quality_of(rows, {})
    (ann,) = quality.reviewers
    assert (ann.answers, ann.withdrawn, ann.skipped, quality.answers) == (0, 1, 1, 0)
    assert quality.features == []


def test_each_feature_has_its_alpha_and_what_dawid_and_skene_would_change() -> None:
    good = [vote(by, item, "yes" if item < 20 else "no") for by in ("ann", "bob") for item in range(40)]
    bad = [vote("cyd", item, "yes" if item % 2 else "no") for item in range(40)]
    (feature,) = quality_of(good + bad, {}).features
    assert (feature.name, feature.examples, feature.votes, feature.differing) == ("beard", 40, 120, 0)
    assert 0.2 < feature.alpha < 0.6
    (alone,) = quality_of(good[:40], {}).features
    assert math.isnan(alone.alpha)
    assert alone.differing is None
    assert alone.why_not == Remark("few workers", {"n": 1, "fewest": 3})


def test_the_export_defuses_what_a_spreadsheet_would_run() -> None:
    rows = [vote('=HYPERLINK("x")', 1, answer={"verdict": "feature", "name": "@x", "shown": [0, 2]})]
    header, line = csv_lines(rows)
    assert header.startswith("id,question,queue,kind,feature")
    assert '"\'=HYPERLINK(""x"")"' in line
    assert "'@x" in line
    assert ",1 3," in line
