"""The feature tree of a run: which features lie below which, from the labels of the examples that were compared."""

from __future__ import annotations

from discovery.tree import FeatureTree, feature_tree
from reports.findings import Findings, names_of
from reports.run import RunError

TOLERANCE = 0.1  # exceptions to "what has this has that", for labels err
SUPPORT = 4  # examples of which it must hold


def tree_of(findings: Findings, *, tolerance: float = TOLERANCE, support: int = SUPPORT) -> FeatureTree:
    if not 0 <= tolerance < 0.5:
        raise RunError(f"--tolerance {tolerance:g} is no share of exceptions: give one from 0 to below 0.5")
    if support < 1:
        raise RunError(f"--support {support} is no number of examples: give 1 or more")
    labels = findings.matrix[:, findings.compared]
    return feature_tree(labels, names_of(findings.found), tolerance=tolerance, support=support)
