"""What features predict, how groups differ, how shares drift."""

from reports.analysis.columns import read_column
from reports.analysis.drift import Share, drift_of
from reports.analysis.groups import GroupsResult, compare_groups, compare_runs
from reports.analysis.target import TargetResult, predict_target
