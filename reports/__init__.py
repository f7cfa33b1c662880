"""What a run leaves behind: the run folder, reports, exports."""

from reports.finished_run import Run
from reports.label_table import Column, GrowingTable, Meaning, read_table, write_table
from reports.reviewers import QualityTerms, ReviewerQuality, csv_lines, quality_of
