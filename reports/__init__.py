"""What a run leaves behind: the run folder, reports, exports."""

from reports.enrichment_table import (
    Column,
    CorrectedCell,
    GrowingTable,
    Meaning,
    read_table,
    table_version,
    write_table,
)
from reports.finished_run import Run
from reports.reviewers import QualityTerms, ReviewerQuality, csv_lines, quality_of
