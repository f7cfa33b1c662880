"""New features are looked at before they are labelled in full, the same way every time."""

from __future__ import annotations

import numpy as np

from discovery import FIRST_LOOK, UNKNOWN, Labels, screening_stages
from flows.discover.screening import FindSame, Rows, Screened, Screening
from models import Ballot, Feature, Labelled, Panel
from models.oracle import BudgetExhausted
from tests.support.made import crowd_of, random_truth, texts

N = 120


class Asked:
    """Labels from a truth, and how many were asked for."""

    def __init__(self, truth: Labels, until: int = 10**9) -> None:
        self.panel = Panel(crowd_of(truth), texts(len(truth)), 1)
        self.rows: list[tuple[list[str], list[int]]] = []
        self.until = until

    def __call__(self, features: list[Feature], rows: Rows) -> Labelled:
        self.rows.append(([feature.name for feature in features], rows.tolist()))
        labelled = self.panel.part(rows).label(features)
        self.until -= 1
        return Labelled(labelled.ballots, BudgetExhausted("used up") if self.until <= 0 else None)

    def look(
        self,
        names: str,
        known: list[tuple[str, Labels]] | None = None,
        number: int = 0,
        labelled: int = N,
        same: FindSame = lambda _: ({}, None),
    ) -> Screened:
        features = [Feature(f"feature {name}") for name in names]
        return Screening(N, labelled, FIRST_LOOK, 5, self).of(features, known or [], number, same)


def truth_of(*shares: float) -> Labels:
    rng = np.random.default_rng(1)
    return np.stack([(rng.permutation(N) < share * N) for share in shares], axis=1).astype(np.int8)


def test_a_rare_feature_is_looked_at_only_and_the_others_are_labelled_in_full() -> None:
    asked = Asked(truth_of(0.02, 0.4, 0.99))
    found = asked.look("abc")
    assert found.dropped[0].startswith("too rare: ")
    assert found.dropped[2].startswith("too common: ")
    known = [int((ballot.labels != UNKNOWN).sum()) for ballot in found.ballots]
    assert known[1] == N
    assert known[0] < N
    assert sum(len(names) * len(rows) for names, rows in asked.rows) == sum(known), "no label is asked for twice"


def test_every_example_is_asked_about_once_with_all_features_that_are_left() -> None:
    asked = Asked(truth_of(0.5, 0.1, 0.02, 0.4, 0.12))  # some leave after the first look, some later
    found = asked.look("abcde")
    assert len(asked.rows) > 2
    assert sorted(row for _, rows in asked.rows for row in rows) == list(range(N))
    assert [(ballot.labels != UNKNOWN).all() for ballot in found.ballots] == [
        place not in found.dropped for place in range(5)
    ]


def test_the_same_as_a_known_one_is_reported_by_name_and_so_are_two_new_ones_that_are_the_same() -> None:
    truth = truth_of(0.4, 0.4, 0.5)
    truth[:, 1] = truth[:, 0]
    known = [("spotted", truth[:, 0])]
    assert Asked(truth).look("bc", known).dropped == {0: "same as spotted: differs on 0 of 36 examples"}
    together = Asked(truth).look("abc").dropped
    assert together == {1: "same as feature a: differs on 0 of 36 examples"}


def test_the_same_questions_come_up_again_and_other_rounds_look_at_other_examples() -> None:
    truth = truth_of(0.3, 0.05)
    first, again, later = Asked(truth), Asked(truth), Asked(truth)
    for asked, number in ((first, 3), (again, 3), (later, 4)):
        asked.look("ab", number=number)
    assert first.rows == again.rows != later.rows


def test_what_ends_it_keeps_the_labels_that_came() -> None:
    asked = Asked(truth_of(0.3, 0.4), until=1)
    found = asked.look("ab")
    assert isinstance(found.stopped, BudgetExhausted)
    assert len(asked.rows) == 1
    assert all((ballot.labels != UNKNOWN).sum() == 36 for ballot in found.ballots)
    assert not found.dropped


def test_a_part_of_a_panel_adds_up_to_the_whole() -> None:
    truth = random_truth(9, 2)
    panel, feature = Panel(crowd_of(truth), texts(9), 3), Feature("feature b")
    whole = Ballot.empty(feature, 9)
    for rows in ([0, 4, 8], [1, 2, 3, 5, 6, 7]):
        whole.add(rows, panel.part(rows).label([feature]).ballots[0])
    assert (whole.labels == panel.label([feature]).ballots[0].labels).all()
    assert len(whole.answers) == 2 * 9


def test_where_more_is_labelled_later_a_look_at_all_that_is_compared_may_still_drop_a_feature() -> None:
    asked = Asked(truth_of(0.02, 0.3))
    found = asked.look("ab", labelled=5_000)
    assert set(found.dropped) == {0}
    assert (found.ballots[1].labels != UNKNOWN).all()
    assert all(rows for _, rows in asked.rows)


def test_looks_after_every_few_examples_ask_each_label_once_and_end_when_nothing_can_be_dropped_any_more() -> None:
    asked = Asked(truth_of(0.5, 0.02, 0.4, 0.09))
    found = asked.look("abcd")
    assert set(found.dropped) >= {1}
    assert sorted(row for _, rows in asked.rows for row in rows) == list(range(N))
    known = sum(int((ballot.labels != UNKNOWN).sum()) for ballot in found.ballots)
    assert sum(len(names) * len(rows) for names, rows in asked.rows) == known
    clear = Asked(truth_of(0.5, 0.4))
    clear.look("ab")
    assert len(clear.rows) < len(asked.rows) <= len(screening_stages(N)) + 1


def test_a_feature_is_held_against_new_ones_that_are_sure_to_count_too() -> None:
    truth = truth_of(0.5, 0.5)
    truth[:, 1] = truth[:, 0]
    truth[np.random.default_rng(2).choice(N, 3, replace=False), 1] ^= 1
    dropped = Asked(truth).look("ab").dropped
    assert list(dropped) == [1]
    assert dropped[1].startswith("same as feature a: differs on ")


def test_what_means_the_same_is_asked_at_some_of_the_looks_only() -> None:
    times: list[int] = []

    def same(ballots: list[Ballot]) -> tuple[dict[int, Feature], None]:
        times.append(int((ballots[0].labels != UNKNOWN).sum()))
        return {}, None

    Asked(truth_of(0.1)).look("a", same=same)
    assert times
    assert set(times) <= {stage.size for stage in screening_stages(N) if stage.meaning}
