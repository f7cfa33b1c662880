from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.worlds import BINARY_SHAPES, ROOT, binary_tree, independent_features, leafy_tree
from twothirds.discovery.metrics import LabelMatrix
from twothirds.discovery.questions import UNKNOWN
from twothirds.discovery.tree import FeatureTree, Implication, as_dot, as_json, as_text, feature_tree, implications


def parents(tree: FeatureTree, features: int) -> list[int]:
    found = {node.feature: ROOT if node.parent is None else node.parent for node in tree.nodes}
    return [found[feature] for feature in range(features)]


@pytest.mark.parametrize("shape", BINARY_SHAPES)
def test_a_binary_tree_is_found_again_from_its_labels(shape: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        world = binary_tree(int(rng.integers(1, 60)), rng, shape)
        tree = feature_tree(world.truth.T)
        assert tree.consistent
        assert world.parents is not None
        assert parents(tree, len(world.parents)) == list(world.parents)


@pytest.mark.parametrize("degree", [2, 3, 6])
def test_a_leafy_tree_is_found_again_whatever_the_order_of_its_features(degree: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        world = leafy_tree(30, degree, rng)
        order = rng.permutation(30)
        tree = feature_tree(world.truth.T[order])
        place = {int(feature): position for position, feature in enumerate(order)} | {ROOT: ROOT}
        assert world.parents is not None
        assert tree.consistent
        assert parents(tree, 30) == [place[world.parents[feature]] for feature in order]


def test_with_some_noise_the_tree_is_found_again_if_exceptions_are_tolerated() -> None:
    rng = np.random.default_rng(0)
    world = binary_tree(6, rng, "balanced")
    labels = np.repeat(world.truth, 40, axis=0).T  # forty examples of each kind
    noisy = labels ^ (rng.random(labels.shape) < 0.01).astype(np.int8)
    assert not feature_tree(noisy).consistent
    tree = feature_tree(noisy, tolerance=0.08)
    assert world.parents is not None
    assert parents(tree, 6) == list(world.parents)
    assert any(node.implication and 0 < node.implication.exception_rate <= 0.08 for node in tree.nodes)


def test_missing_labels_neither_support_an_implication_nor_break_it() -> None:
    labels: LabelMatrix = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [1, UNKNOWN, 0, 0, UNKNOWN]], dtype=np.int8)
    found = {(one.below, one.above): one for one in implications(labels)}
    assert found[2, 1] == Implication(2, 1, support=1, exceptions=0)
    assert found[1, 2] == Implication(1, 2, support=1, exceptions=0)
    assert (2, 1) not in {(one.below, one.above) for one in implications(labels, support=2)}


def test_an_implication_counts_its_exceptions() -> None:
    labels: LabelMatrix = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 1]], dtype=np.int8)
    assert implications(labels, tolerance=0.2) == []
    (below, above) = implications(labels, tolerance=0.25)
    assert (below.support, below.exceptions, below.exception_rate) == (4, 1, 0.25)
    assert (above.below, above.above) == (1, 0)


def test_features_of_the_same_examples_become_one_node() -> None:
    labels: LabelMatrix = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=np.int8)
    tree = feature_tree(labels, ["furry", "hairy", "dog"])
    assert as_text(tree) == "furry = hairy (2)\n└── dog (1)"


def test_features_that_cross_are_reported() -> None:
    tree = feature_tree(independent_features(60, [0.5, 0.5, 0.5], np.random.default_rng(1)).truth.T)
    assert tree.crossing == [(0, 1), (0, 2), (1, 2)]
    assert len(tree.roots) == 3


def rows(*members: range | list[int]) -> LabelMatrix:
    labels = np.zeros((len(members), 12), dtype=np.int8)
    for row, examples in zip(labels, members, strict=True):
        row[list(examples)] = 1
    return labels


TAXONOMY = rows(range(10), range(6), range(6, 10), [0, 1, 2, 10], [])
NAMES = ["natural", "animal", "plant", 'a "bird"', "nothing"]


def test_the_tree_is_printed_with_numbers_and_exceptions() -> None:
    tree = feature_tree(TAXONOMY, NAMES, tolerance=0.25)
    assert as_text(tree).splitlines() == [
        "natural (10)",
        "├── animal (6)",
        '│   └── a "bird" (4, 1 exception)',
        "└── plant (4)",
        "nothing (0)",
    ]
    assert '  f1 -> f3 [style=dashed, label="1"];' in as_dot(tree)


def test_the_tree_as_json_and_dot_says_the_same() -> None:
    exact = TAXONOMY.copy()
    exact[3, 10] = 0
    tree = feature_tree(exact, NAMES)
    data = json.loads(json.dumps(as_json(tree)))
    assert data["consistent"] is True
    assert [root["name"] for root in data["features"]] == ["natural", "nothing"]
    animal = data["features"][0]["below"][0]
    assert (animal["name"], animal["positives"], animal["support"], animal["exception_rate"]) == ("animal", 6, 6, 0.0)
    dot = as_dot(tree)
    assert dot.startswith("digraph features {")
    assert "  f0 -> f1;" in dot
    assert '  f3 [label="a \\"bird\\" (3)"];' in dot


@pytest.mark.parametrize(("tolerance", "names"), [(0.5, None), (-0.1, None), (0.0, ["one"])])
def test_bad_settings_are_refused(tolerance: float, names: list[str] | None) -> None:
    with pytest.raises(ValueError, match="give"):
        feature_tree(TAXONOMY, names, tolerance=tolerance)


def test_no_features_make_an_empty_tree() -> None:
    tree = feature_tree(np.zeros((0, 5), dtype=np.int8))
    assert as_text(tree) == ""
    assert tree.nodes == []
