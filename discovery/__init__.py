"""The algorithm: pure Python and numpy, no I/O, no Prefect."""

from discovery.look import FIRST_LOOK, LOOK_EVERY, Look, TooLittle, judge, look_error, looks, order_to_tell
from discovery.metrics import (
    LabelMatrix,
    g,
    interest_and_distinctness,
    interesting_and_distinct,
    matches_with_truth,
    none_bound,
)
from discovery.questions import (
    UNKNOWN,
    Comparison,
    HearsAnswers,
    Kind,
    Labels,
    Strategy,
    StrategyError,
    differs_clearly,
    valid_columns,
)
from discovery.sameness import NOTHING_SEEN, SAME_FROM, LabelNoise, chance_of_same, is_in_doubt, label_odds
from discovery.tree import FeatureTree, as_dot, as_json, as_text, feature_tree
from discovery.twins import SAME_LABELS, Closeness, correlations, find_twin, normalised, same_name
from discovery.votes import NOBODY, VoteSheet, majority_labels, votes_to_ask
from discovery.wording import Described, Likeness, likeness
