"""Agreement, correctness, intervals and tests."""

from twothirds.discovery.statistics.agreement import (
    BRIER,
    ERRORS_ALIKE,
    OF_CORRECTNESS,
    OF_PAIRS,
    OF_VOTES,
    UNSCORED,
    Calibration,
    Statistic,
    Threshold,
    best_threshold,
    brier_columns,
    calibration,
    error_columns,
    krippendorff_alpha,
    pair_columns,
    vote_columns,
)
from twothirds.discovery.statistics.alt_test import EPSILON, FEWEST_EXAMPLES, LEVEL, AltTest, alt_test
from twothirds.discovery.statistics.certificate import (
    LEVELS,
    Certificate,
    Promise,
    Shares,
    passes,
    sample_sizes,
)
from twothirds.discovery.statistics.dawid_skene import ENOUGH_TO_LABEL, FEWEST_WORKERS, TOLERANCE, dawid_skene, why_not
from twothirds.discovery.statistics.escalation import (
    Setting,
    Side,
    alone,
    chance_of_right,
    cheapest,
    enough,
    escalated,
    frontier,
    odd_numbers,
)
from twothirds.discovery.statistics.intervals import (
    Z_95,
    Estimate,
    Interval,
    Resamples,
    estimates,
    refitted,
    share,
    wilson,
)
from twothirds.discovery.statistics.matching import ALIKE, best_matches, distinct_selections, order_agreement
from twothirds.discovery.statistics.ppi import Corrected, corrected_share
from twothirds.discovery.statistics.ridge import fit_ridge
