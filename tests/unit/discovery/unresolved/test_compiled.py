"""The join that numba compiles where it is installed: here as plain Python, and compiled where it can be."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import discovery.unresolved.compiled
from discovery.unresolved.compiled import CompiledJoin, fastest_partners, meetings
from discovery.unresolved.join import Places, TripleJoin
from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.survey import survey
from tests.support.made import packed


def pairs(batches: list[tuple[Places, Places]]) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(pair)) for b, c in batches for pair in zip(b.tolist(), c.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("shares", [[0.5] * 14, [0.5] * 30, [0.05] * 40, [0.9] * 12, [0.5] * 3])
def test_the_join_for_compiling_finds_the_same_pairs_as_the_one_in_numpy(shares: list[float]) -> None:
    join = TripleJoin(packed(120, shares))
    compiled = CompiledJoin(join, meetings)
    found = [pairs(list(compiled.partners(a))) for a in range(120)]
    assert found == [pairs(list(join.partners(a))) for a in range(120)]
    assert any(found) == (len(shares) < 30 or shares[0] < 0.1)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_it_makes_room_for_many_pairs_and_leaves_crowds_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    join = TripleJoin(packed(150, [0.03] * 10))
    expected = [pairs(list(join.partners(a))) for a in range(10)]
    assert max(map(len, expected)) > 1 << 10
    for crowded in (0, 10**6):
        monkeypatch.setattr(discovery.unresolved.compiled, "CROWDED", crowded)
        compiled = CompiledJoin(join, meetings)
        assert [pairs(list(compiled.partners(a))) for a in range(10)] == expected


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_what_was_written_long_ago_is_forgotten_before_the_numbers_run_out() -> None:
    join = TripleJoin(packed(60, [0.4] * 9))
    compiled = CompiledJoin(join, meetings)
    compiled._added = np.iinfo(np.int32).max - 200
    for a in (3, 5, 3, 5, 3):
        assert pairs(list(compiled.partners(a))) == pairs(list(join.partners(a)))


@pytest.mark.parametrize("labels", [packed(90, [0.5] * 70), packed(90, [])])
def test_what_it_is_not_made_for_is_left_to_numpy(labels: PackedLabels) -> None:
    join = TripleJoin(labels)
    compiled = CompiledJoin(join, meetings)
    assert [pairs(list(compiled.partners(a))) for a in (0, 50)] == [pairs(list(join.partners(a))) for a in (0, 50)]


def test_few_examples_are_not_worth_compiling() -> None:
    join = TripleJoin(packed(50, [0.5] * 5))
    assert fastest_partners(join) == join.partners


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_survey_lists_the_same_triples_in_the_same_order_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = packed(130, [0.5] * 15)
    by_numpy = survey(labels, 10_000)
    monkeypatch.setattr(
        "discovery.unresolved.survey.fastest_partners", lambda join: CompiledJoin(join, meetings).partners
    )
    compiled = survey(labels, 10_000)
    assert by_numpy.triples is not None
    assert compiled.triples is not None
    assert by_numpy.triples.shape[1] > 100
    assert np.array_equal(by_numpy.triples, compiled.triples)
    assert np.array_equal(by_numpy.found, compiled.found)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed: requirements-scale.txt")
@pytest.mark.parametrize("shares", [[0.5] * 30, [0.5] * 64, [0.2] * 20, [0.5] * 3])
def test_compiled_it_finds_the_same_survey(shares: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    labels = packed(1_500, shares)
    by_numpy = survey(labels, 4_000_000)
    monkeypatch.setattr(discovery.unresolved.compiled, "WORTH_COMPILING", 1)
    assert isinstance(fastest_partners(TripleJoin(labels)).__self__, CompiledJoin)  # type: ignore[attr-defined]
    compiled = survey(labels, 4_000_000)
    assert np.array_equal(by_numpy.found, compiled.found)
    assert (by_numpy.triples is None) == (compiled.triples is None)
    if by_numpy.triples is not None and compiled.triples is not None:
        assert np.array_equal(by_numpy.triples, compiled.triples)
    assert import_module("numba").__version__ == "0.68.1"
