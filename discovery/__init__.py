"""The algorithm: pure Python and numpy, no I/O, no Prefect."""

from twothirds.discovery.duplicates import (
    SAME_LABELS,
    Closeness,
    Described,
    Duplicates,
    Pair,
    find_twin,
    normalised,
    same_name,
    singular,
)
from twothirds.discovery.metrics import (
    DIFFERENCE,
    LabelMatrix,
    correlations,
    g,
    interest_and_distinctness,
    interesting_and_distinct,
    matches_with_truth,
    mean_match_by_chance,
    none_bound,
)
from twothirds.discovery.questions import (
    UNKNOWN,
    Comparison,
    HearsAnswers,
    Kind,
    Labels,
    Strategy,
    StrategyError,
    contradicts,
    differs_clearly,
    possible_counts,
    valid_columns,
)
from twothirds.discovery.tree import FeatureTree, as_dot, as_json, as_text, feature_tree
from twothirds.discovery.votes import NOBODY, VoteSheet, majority_labels, votes_to_ask
