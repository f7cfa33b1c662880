"""The benchmarks of the strategies: what they are measured on, and beside whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import strategies
from benchmarks.cases import SHIPPED, SHORT, Case, Variant, found, of_matrix, parts_of
from benchmarks.discovery import attainable
from benchmarks.discovery.attainable import Seer, all_knowing, half_knowing
from benchmarks.rehearsal import rehearse
from benchmarks.worlds import World
from discovery.simulation.crowds import Matrix

FACES = SHIPPED[1]


def write_matrix(path: Path, truth: Matrix) -> Path:
    lines = [",".join(["id", *(f"f{j}" for j in range(truth.shape[1]))])]
    lines += [",".join([f"e{i}", *map(str, row)]) for i, row in enumerate(truth.tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_part_of_a_matrix_has_some_of_its_examples_and_some_of_its_features(tmp_path: Path) -> None:
    stairs = (np.arange(120)[:, None] > np.arange(110) + 5).astype(np.int8)  # of any two columns one implies the other
    for part in parts_of(write_matrix(tmp_path / "stairs.csv", stairs), 6):
        truth = part.world(0).truth
        assert 50 <= len(truth) <= 100
        assert 25 <= truth.shape[1] <= 110 * 2 // 3
        assert ((truth == 1).any(axis=0) & (truth == 0).any(axis=0)).all(), "a feature that all have or all lack"
        ordered = truth[:, np.argsort(-truth.sum(axis=0))]
        assert (ordered[:, 1:] <= ordered[:, :-1]).all(), "columns were not taken from the same examples"


def test_parts_are_the_same_each_time_and_differ_from_one_another() -> None:
    parts, again = parts_of(FACES, 3), parts_of(FACES, 3)
    assert [part.name for part in parts] == ["faces, part 1, any", "faces, part 2, rare", "faces, part 3, common"]
    truths = [part.world(0).truth for part in parts]
    assert all(np.array_equal(truth, same.world(7).truth) for truth, same in zip(truths, again, strict=True))
    assert len({truth.tobytes() for truth in truths}) == 3


def test_parts_with_rare_features_have_rarer_ones_than_parts_with_common_features() -> None:
    shares = [float((part.world(0).truth == 1).mean()) for part in parts_of(FACES, 9)]
    assert np.mean(shares[1::3]) < np.mean(shares[::3]) < np.mean(shares[2::3])


def test_subsets_puts_parts_of_every_matrix_in_the_table_instead_of_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = write_matrix(tmp_path / "given.csv", np.random.default_rng(0).integers(2, size=(60, 40)).astype(np.int8))
    strategies.main([str(given), "--subsets", "1", "--no-worlds", "--seeds", "1"])
    printed = capsys.readouterr().out
    names = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("|")]
    expected = [f"{name}, part 1, any" for name in ("zoo", "faces", "given")]
    assert names == ["data", "---", *expected]
    assert printed.startswith("`python -m benchmarks.strategies MATRIX.csv … --subsets 1 --no-worlds --seeds 1`;")


def test_who_knows_every_feature_finds_one_that_counts_with_every_question() -> None:
    faces = of_matrix(FACES)
    assert found(all_knowing(faces), faces, 1).tolist() == [[SHORT, strategies.ceiling(faces)]]


def test_who_knows_every_feature_finds_three_with_every_question_that_may_name_three() -> None:
    halves = Case("halves", lambda _: World(np.random.default_rng(0).integers(2, size=(60, 90)).astype(np.int8)))
    assert found(all_knowing(halves, most=3), halves, 1)[0, 0] == 90, "all there are, by 30 of 35 questions"


def test_several_a_question_are_judged_apart_where_the_ceiling_leaves_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rich = Case("rich", lambda _: World(np.random.default_rng(0).integers(2, size=(60, 90)).astype(np.int8)))
    poor = Case("poor", lambda _: World(np.repeat(np.eye(4, dtype=np.int8), 10, axis=0)))

    def made_up(variant: Variant, case: Case, seeds: int) -> NDArray[np.float64]:
        most = 3 if case is poor else 20 * variant.most + 10 * (variant.strategy == "auto")
        return np.full((seeds, 2), most, np.float64)

    monkeypatch.setattr(strategies, "found", made_up)
    table, _, said = strategies.several([rich, poor], [1, 3], seeds=1).partition("\n\n")
    assert [row.split("|")[2].strip() for row in table.splitlines()[2:4]] == ["90", "4"], "the ceilings"
    assert table.splitlines()[-1].endswith("| 1.25 / 1.25 | 2.25 / 2.25 | 2.92 / 2.92 |"), "means"
    _, with_room, without = said.splitlines()
    assert "at least 1.6 times" in with_room
    assert with_room.endswith("(1 of 2), mean multiple of that: 1: 1.50, 3: 3.50.")
    assert without.endswith("(1 of 2), mean share of the ceiling: 1: 0.75, 3: 0.75.")


def test_who_knows_the_other_half_never_sees_the_half_that_is_to_be_found() -> None:
    truth = np.arange(40 * 11).reshape(40, 11) % 7 % 2
    whole = Case("numbered", lambda _: World(truth.astype(np.int8)))
    half, seeing = half_knowing(whole)
    for seed in range(3):
        sought, known = half.world(seed).truth, seeing.believed(seed)
        assert sought.shape[1] + known.shape[1] == 11
        together = np.hstack([sought, known])
        assert sorted(map(bytes, together.T.copy())) == sorted(map(bytes, truth.astype(np.int8).T.copy()))


def test_who_knows_the_other_half_finds_more_than_random_triples() -> None:
    half, seeing = half_knowing(of_matrix(FACES))
    knowing, at_random = (found(asker, half, 2)[:, 0].mean() for asker in (seeing, Variant("", "random-triple")))
    assert knowing > 1.2 * at_random


def test_a_seer_does_not_ask_again_for_what_would_have_answered() -> None:
    believed = np.repeat(np.eye(10, dtype=np.int8), 9, axis=0)  # ten features that exclude one another
    for seed in range(10):
        world, rng = World(believed[:, seed : seed + 1]), np.random.default_rng(seed)
        history = rehearse(Seer(believed, rng), world.crowd("salience", seed), world.truth, 7, rng, until=1)
        assert history.columns == [0], "a pair answers for two features, so five NONEs leave nothing else"


@pytest.mark.parametrize("command", [strategies.main, attainable.main])
def test_a_matrix_that_cannot_be_read_is_one_line(command: object, tmp_path: Path) -> None:
    assert callable(command)
    with pytest.raises(SystemExit, match=r"missing\.csv cannot be read .*give a CSV file"):
        command([str(tmp_path / "missing.csv"), "--seeds", "1"])


def test_no_seeds_at_all_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        strategies.main(["--seeds", "0"])
    assert "'0' is not 1 or more" in capsys.readouterr().err
