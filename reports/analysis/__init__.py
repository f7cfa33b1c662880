"""What features predict, how groups differ, how shares drift."""

from twothirds.reports.analysis.columns import read_column
from twothirds.reports.analysis.groups import Drift, GroupsResult, Share, compare_groups, compare_runs, drift_of
from twothirds.reports.analysis.held_out import FEWEST_HELD_OUT, HeldOutScore, held_out_rows, score_held_out
from twothirds.reports.analysis.places import example_order, map_places
from twothirds.reports.analysis.prediction import Target
from twothirds.reports.analysis.target import TargetResult, predict_target
