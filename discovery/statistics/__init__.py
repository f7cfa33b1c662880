"""Agreement, correctness, intervals and tests."""

from discovery.statistics.agreement import (
    BRIER,
    ERRORS_ALIKE,
    OF_CORRECTNESS,
    OF_PAIRS,
    OF_VOTES,
    UNSCORED,
    Calibration,
    Statistic,
    brier_columns,
    calibration,
    error_columns,
    krippendorff_alpha,
    pair_columns,
    vote_columns,
)
from discovery.statistics.alt_test import EPSILON, FEWEST_EXAMPLES, LEVEL, AltTest, alt_test
from discovery.statistics.certificate import (
    LEVELS,
    Certificate,
    Promise,
    Shares,
    passes,
    sample_sizes,
)
from discovery.statistics.dawid_skene import ENOUGH_TO_LABEL, FEWEST_WORKERS, TOLERANCE, dawid_skene, why_not
from discovery.statistics.escalation import (
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
from discovery.statistics.intervals import Z_95, Estimate, Interval, Resamples, estimates, refitted, share, wilson
from discovery.statistics.matching import ALIKE, best_matches, distinct_selections, order_agreement
from discovery.statistics.ppi import Corrected, corrected_share
from discovery.statistics.ridge import fit_ridge
