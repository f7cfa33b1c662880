"""The page and the tables of a comparison."""

from twothirds.reports.compare.comparison import OracleComparison, compare_oracles
from twothirds.reports.compare.exports import NAME as COMPARISON_JSON
from twothirds.reports.compare.exports import (
    ListedComparison,
    read_listed,
    read_settings,
    summary_rows,
    write_comparison,
)
from twothirds.reports.compare.study import Discovered, Named, Rater, Study
from twothirds.reports.compare.two_runs import side_by_side
from twothirds.reports.compare.verdict import verdict_of
