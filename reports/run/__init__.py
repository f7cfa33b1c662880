"""The run folder: written whole or not at all, read and checked."""

from reports.run.answers import AnsweredComparison, Tally
from reports.run.csv_cells import defuse, defused, restore
from reports.run.files import RunError, check_replaceable, check_writable, replace_file, replaced_folder
from reports.run.findings import MICRO, Findings, Found, names_of, read_findings
from reports.run.folder import CURATION, RunFolder, write_run
from reports.run.summary import NAME as RUN_JSON
from reports.run.summary import DatasetSummary, JsonPart, Number, OracleSummary, RunSummary, SkippedExample, TruthScore
