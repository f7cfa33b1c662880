"""What a run leaves behind: the run folder, reports, exports."""

from twothirds.reports.finished_run import Run
from twothirds.reports.reviewers import QualityTerms, ReviewerQuality, csv_lines, quality_of
