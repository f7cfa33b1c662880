"""Two runs side by side: matched by labels first, then by words; agreement over what both have labelled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.run_folders import make_run
from twothirds.reports.compare.two_runs import side_by_side
from twothirds.reports.finished_run import Run

IDS = [f"e{number}" for number in range(40)]


def run_of(folder: Path, rows: dict[str, list[int]], ids: list[str] = IDS) -> Run:
    return make_run(folder, "data", ids, list(rows), np.array(list(rows.values()), np.int8))


def test_features_match_by_what_they_select_then_by_words_and_the_rest_is_of_one_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    some, other, third, own = (rng.integers(0, 2, 40).tolist() for _ in range(4))
    nearly = [1 - some[0], *some[1:]]
    a = run_of(tmp_path / "a", {"glasses": some, "dark": other, "hat": third, "mine": own})
    opposite = [1 - value for value in other]
    b = run_of(tmp_path / "b", {"spectacles": nearly, "light": opposite, "Hats": own, "yours": third[::-1]})
    found = side_by_side(a.findings, IDS, b.findings, IDS)
    pairs = {(one.a.name, one.b.name): one for one in found.pairs}
    assert set(pairs) == {("glasses", "spectacles"), ("dark", "light"), ("mine", "Hats")}
    assert pairs["glasses", "spectacles"].agreement == 39 / 40
    assert pairs["dark", "light"].complement
    assert pairs["dark", "light"].agreement == 1.0
    assert [one.name for one in found.only_a] == ["hat"]
    assert [one.name for one in found.only_b] == ["yours"]


def test_without_examples_in_common_words_decide_and_nothing_is_said_to_agree(tmp_path: Path) -> None:
    labels = [0, 1] * 20
    a = run_of(tmp_path / "a", {"hat": labels, "beard": labels})
    b = run_of(tmp_path / "b", {"hats": labels, "smile": labels}, [f"x{number}" for number in range(40)])
    found = side_by_side(a.findings, IDS, b.findings, b.findings.ids)
    assert found.shared_examples == 0
    [pair] = found.pairs
    assert (pair.a.name, pair.b.name, pair.agreement, pair.by_labels) == ("hat", "hats", None, False)


def test_examples_are_the_same_by_their_keys_whatever_they_are_called(tmp_path: Path) -> None:
    labels = [int(value) for value in np.random.default_rng(2).integers(0, 2, 40)]
    a = run_of(tmp_path / "a", {"hat": labels})
    b = run_of(tmp_path / "b", {"cap": labels[::-1]}, [f"x{number}" for number in range(40)])
    keys = [f"content {number}" for number in range(40)]
    found = side_by_side(a.findings, keys, b.findings, ["", *keys[::-1][1:]])
    assert found.shared_examples == 39
    assert found.pairs[0].agreement == 1.0
