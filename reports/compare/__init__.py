"""The page and the tables of a comparison."""

from reports.compare.comparison import OracleComparison, compare_oracles
from reports.compare.exports import NAME as COMPARISON_JSON
from reports.compare.exports import ListedComparison, read_listed, read_settings, summary_rows, write_comparison
from reports.compare.study import Discovered, Named, Rater, Study
from reports.compare.two_runs import side_by_side
from reports.compare.verdict import verdict_of
