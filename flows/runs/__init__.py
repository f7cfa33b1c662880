"""What is done with finished runs: report, export, curate."""

from flows.runs.curate import CurationRequest, curate
from flows.runs.feature_lists import about_of, read_features
from flows.runs.report import describe, export, forecast_control, page_lines, report
