from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from twothirds.discovery.statistics.matching import Match, best_matches, distinct_selections, order_agreement


def test_the_assignment_is_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.uniform(-1, 1, (4, 5))
        found = sum(one.correlation**2 for one in best_matches(table, alike=0.0))
        best = max(sum(table[a, b] ** 2 for a, b in enumerate(order)) for order in permutations(range(5), 4))
        assert found == pytest.approx(best)


def test_weak_pairs_are_no_match_and_complements_are() -> None:
    table = np.array([[-0.95, 0.1], [0.2, 0.4]])
    assert best_matches(table) == [Match(0, 0, -0.95)]
    assert best_matches(np.zeros((0, 3))) == []


def test_orders_agree_reverse_or_are_too_short() -> None:
    same = [Match(place, place + 2, 1.0) for place in range(5)]
    reverse = [Match(place, 9 - place, 1.0) for place in range(5)]
    assert order_agreement(same).value == pytest.approx(1)
    assert order_agreement(reverse).value == pytest.approx(-1)
    assert order_agreement(same[:2]).value is None
    assert order_agreement([]).reason == "0 features are in both, and it takes 3"


def test_names_for_the_same_selection_count_once() -> None:
    table = np.eye(4)
    table[0, 1] = table[1, 0] = 0.97
    table[1, 2] = table[2, 1] = -0.96
    assert distinct_selections(table, 0.95) == 2
    assert distinct_selections(np.eye(0), 0.95) == 0
