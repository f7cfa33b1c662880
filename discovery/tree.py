"""The feature tree behind labels (Section 4): which feature lies below which, exactly if the labels form a tree.

Feature g lies below f when every example that has g has f too. On noisy labels a share of exceptions is tolerated. Each
feature hangs under the smallest feature that it lies below; features that lie below one another are the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from twothirds.discovery.metrics import LabelMatrix


@dataclass(frozen=True, slots=True)
class Implication:
    """Of the `support` examples that have `below` and whose label for `above` is known, `exceptions` lack `above`."""

    below: int
    above: int
    support: int
    exceptions: int

    @property
    def exception_rate(self) -> float:
        return self.exceptions / self.support


@dataclass(slots=True)
class Node:
    feature: int
    name: str
    positives: int
    implication: Implication | None = None  # why it hangs where it hangs; None at the top
    same: list[str] = field(default_factory=list)  # names of features that are true of the same examples
    children: list[Node] = field(default_factory=list)

    @property
    def parent(self) -> int | None:
        return self.implication.above if self.implication else None


@dataclass(frozen=True)
class FeatureTree:
    roots: list[Node]
    crossing: list[tuple[int, int]]  # pairs of features that overlap though neither lies below the other

    @property
    def consistent(self) -> bool:
        """The labels form a tree: any two features are nested or disjoint, up to the tolerated exceptions."""
        return not self.crossing

    @property
    def nodes(self) -> list[Node]:
        """All nodes, each before those below it."""
        found: list[Node] = []
        ahead = self.roots[::-1]
        while ahead:
            node = ahead.pop()
            found.append(node)
            ahead += node.children[::-1]
        return found


def implications(labels: LabelMatrix, *, tolerance: float = 0.0, support: int = 1) -> list[Implication]:
    """All implications between different features with at most this exception rate and at least this support.

    `labels` has one row per feature and one column per example; a missing label supports nothing."""
    has, lacks = (labels == 1).astype(np.int64), (labels == 0).astype(np.int64)
    exceptions = has @ lacks.T
    supports = has @ has.T + exceptions
    holds = (supports >= max(support, 1)) & (exceptions <= tolerance * supports)
    np.fill_diagonal(holds, val=False)
    found = np.argwhere(holds).tolist()
    return [Implication(g, f, int(supports[g, f]), int(exceptions[g, f])) for g, f in found]


def feature_tree(
    labels: LabelMatrix, names: Sequence[str] | None = None, *, tolerance: float = 0.0, support: int = 1
) -> FeatureTree:
    """The tree of these features. A feature without any positive example hangs nowhere and stands alone at the top."""
    if not 0 <= tolerance < 0.5:
        raise ValueError(f"tolerance is {tolerance:g}: give a share of exceptions from 0 to below 0.5")
    called = [f"feature {i}" for i in range(len(labels))] if names is None else list(names)
    if len(called) != len(labels):
        raise ValueError(f"{len(called)} names for {len(labels)} features: give one name per feature")
    holding = {
        (found.below, found.above): found for found in implications(labels, tolerance=tolerance, support=support)
    }
    positives = (labels == 1).sum(axis=1)
    nodes: dict[int, Node] = {}
    roots: list[Node] = []
    for feature in np.argsort(-positives, kind="stable").tolist():  # the largest first: what lies above is there
        node = Node(feature, called[feature], int(positives[feature]))
        above = _smallest([holding[feature, other] for other in nodes if (feature, other) in holding], nodes)
        if above is not None and (above.above, feature) in holding:
            nodes[above.above].same.append(node.name)
            continue
        node.implication = above
        (roots if above is None else nodes[above.above].children).append(node)
        nodes[feature] = node
    return FeatureTree(roots, _crossing(labels, set(holding), tolerance))


def _smallest(above: list[Implication], nodes: dict[int, Node]) -> Implication | None:
    """The implication to the smallest feature; of two equally small ones the one with fewer exceptions."""
    return min(above, key=lambda found: (nodes[found.above].positives, found.exception_rate), default=None)


def _crossing(labels: LabelMatrix, nested: set[tuple[int, int]], tolerance: float) -> list[tuple[int, int]]:
    has = (labels == 1).astype(np.int64)
    shared = has @ has.T
    size = np.diagonal(shared)
    return [
        (f, g)
        for f, g in combinations(range(len(labels)), 2)
        if (f, g) not in nested and (g, f) not in nested and shared[f, g] > tolerance * min(size[f], size[g])
    ]


def as_text(tree: FeatureTree) -> str:
    """One line per feature, indented under what it lies below, with its number of examples."""
    lines: list[str] = []
    for root in tree.roots:
        lines.append(_caption(root))
        _draw_children(root, "", lines)
    return "\n".join(lines)


def _draw_children(node: Node, indent: str, lines: list[str]) -> None:
    for child in node.children:
        last = child is node.children[-1]
        lines.append(f"{indent}{'└── ' if last else '├── '}{_caption(child)}")
        _draw_children(child, indent + ("    " if last else "│   "), lines)


def _caption(node: Node) -> str:
    exceptions = node.implication.exceptions if node.implication else 0
    noted = f", {exceptions} exception{'s' if exceptions > 1 else ''}" if exceptions else ""
    return f"{' = '.join([node.name, *node.same])} ({node.positives}{noted})"


def as_json(tree: FeatureTree) -> dict[str, Any]:
    return {"consistent": tree.consistent, "features": [_json_of(root) for root in tree.roots]}


def _json_of(node: Node) -> dict[str, Any]:
    found = node.implication
    return {
        "name": node.name,
        "same": node.same,
        "positives": node.positives,
        "support": found.support if found else None,
        "exception_rate": round(found.exception_rate, 6) if found else None,
        "below": [_json_of(child) for child in node.children],
    }


def as_dot(tree: FeatureTree) -> str:
    """A Graphviz graph; an edge with exceptions is dashed and says how many."""
    lines = ["digraph features {", "  node [shape=box];"]
    for node in tree.nodes:
        lines.append(f"  f{node.feature} [label={_quoted(_caption(node))}];")
        if node.implication:
            style = f' [style=dashed, label="{node.implication.exceptions}"]' if node.implication.exceptions else ""
            lines.append(f"  f{node.parent} -> f{node.feature}{style};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
