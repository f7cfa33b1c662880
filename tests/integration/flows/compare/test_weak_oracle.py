"""What a comparison says of an oracle that is no good: its share of right labels is not left to impress by itself."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.comparisons import FEATURES, compared, make_world, write_votes
from twothirds.discovery.statistics import Threshold
from twothirds.reports.compare.comparison import OracleComparison
from twothirds.reports.compare.page import render_comparison
from twothirds.reports.compare.study import Reference
from twothirds.reports.compare.verdict import verdict_of
from twothirds.sources import load_dataset


def truth_of(world: str) -> list[dict[str, str]]:
    with (Path(world).parent / "truth.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page_of(found: OracleComparison, world: str) -> str:
    return " ".join(render_comparison(found, load_dataset(world)).split())


def test_who_says_no_to_everything_is_reported_to_be_no_better_than_that(tmp_path: Path) -> None:
    world = make_world(tmp_path, n=60)
    never = [(row["id"], feature, "w", 0) for row in truth_of(world) for feature in FEATURES]
    found = compared(tmp_path, world, write_votes(tmp_path / "never.csv", never), votes=1, comparisons=0)
    (said,) = [line for line in verdict_of(found) if "is right in" in line]
    assert "no better than giving each feature's more frequent label to every example" in said
    assert found.reference.without_looking == pytest.approx(found.qualities[0].accuracy.overall["majority"].value)


def test_who_knows_is_not(tmp_path: Path) -> None:
    found = compared(tmp_path, make_world(tmp_path), "simulated?flip=0.05", features="hat; glasses", votes=1)
    assert not [line for line in verdict_of(found) if "no better" in line]


def test_votes_that_err_alike_are_reported(tmp_path: Path) -> None:
    """Errors in common are 1 where every vote repeats the first, and about 0 where votes are coins."""
    world = make_world(tmp_path, n=200)
    wrong = np.random.default_rng(1).random((200, len(FEATURES))) < 0.2
    votes = [
        (row["id"], feature, f"worker {voter}", int(row[feature]) ^ int(wrong[place, column]))
        for place, row in enumerate(truth_of(world))
        for column, feature in enumerate(FEATURES)
        for voter in range(5)
    ]
    oracles = (write_votes(tmp_path / "alike.csv", votes), "simulated?flip=0.2")
    found = compared(tmp_path, world, *oracles, features="hat; glasses; beard", votes=5, comparisons=0)
    alike, alone = (quality.right.overall["errors in common"] for quality in found.qualities)
    assert alike.value == pytest.approx(1.0)
    assert alone.value is not None
    assert alone.low is not None
    assert alone.high is not None
    assert alone.low < 0.1
    assert abs(alone.value) < 0.15


def test_without_labels_there_is_nothing_to_compare_with() -> None:
    assert Reference(None, "none", "nothing").without_looking is None


def test_a_threshold_is_named_only_where_labels_would_be_better(tmp_path: Path) -> None:
    found = compared(tmp_path, make_world(tmp_path), "simulated", features="hat", votes=1, comparisons=0)
    (quality,) = found.qualities

    def said(threshold: Threshold) -> list[str]:
        calibrated = replace(found, qualities=[replace(quality, threshold=threshold)])
        return [line for line in verdict_of(calibrated) if "yes_from" in line]

    assert said(Threshold(0.8, balanced=0.7, now=0.7)) == []
    (line,) = said(Threshold(0.8, balanced=0.9, now=0.7))
    assert "90 % instead of 70 %" in line
    assert line.endswith("yes_from=0.8.")


def test_who_gives_one_label_to_every_example_is_reported(tmp_path: Path) -> None:
    world = make_world(tmp_path, n=40)
    rows = [(row["id"], feature, row[feature]) for row in truth_of(world) for feature in FEATURES]
    votes = [(name, feature, "w", int(feature == "beard" and value == "1")) for name, feature, value in rows]
    found = compared(tmp_path, world, write_votes(tmp_path / "never.csv", votes), "simulated", votes=1, comparisons=0)
    (said,) = [line for line in verdict_of(found) if "every example the same label" in line]
    assert "same label, no, for 2 of 3 features" in said
    assert not [line for line in verdict_of(found) if "kappa of not defined" in line]


def test_the_page_tells_what_is_right_without_looking(tmp_path: Path) -> None:
    """Beside each share of right labels, and where calibrated probabilities know nothing of single examples."""
    world = make_world(tmp_path, n=40)
    never = [(row["id"], feature, f"w{vote}", 0) for row in truth_of(world) for feature in FEATURES for vote in (0, 1)]
    oracles = (write_votes(tmp_path / "never.csv", never), "simulated")
    found = compared(tmp_path, world, *oracles, votes=2, comparisons=0)
    page = page_of(found, world)
    assert "without looking: each feature's more frequent label for every example" in page
    assert found.reference.without_looking is not None
    assert f"{100 * found.reference.without_looking:.1f}" in page
    assert page.count("It knows nothing of single examples") == 1  # not of the crowd that knows the truth
    assert found.reference.brier_without_looking == pytest.approx(
        sum(one * (1 - one) for one in found.reference.shares if one is not None) / len(FEATURES)
    )


def test_answers_to_comparisons_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    oracles = ("simulated?refuse=1", "simulated")
    world = make_world(tmp_path)
    found = compared(tmp_path, world, *oracles, features="hat; beard", votes=1, comparisons=4)
    page = page_of(found, world)
    assert "0 named, 0 found nothing, 4 unusable" in page
