"""What a run leaves behind: the run folder, reports, exports."""

from reports.finished_run import Run
from reports.reviewers import QualityTerms, ReviewerQuality, csv_lines, quality_of
