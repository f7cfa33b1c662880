"""What a run leaves behind: the run folder, reports, exports."""

from twothirds.reports.column_names import VOTES
from twothirds.reports.finished_run import Run
from twothirds.reports.label_table import LabelledFeature, LabelTable, Source
from twothirds.reports.reviewers import QualityTerms, ReviewerQuality, csv_lines, quality_of
