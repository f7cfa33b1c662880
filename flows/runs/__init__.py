"""What is done with finished runs: report, export, curate, ask why."""

from flows.runs.attributes import attributes, attributes_of
from flows.runs.curate import CurationRequest, curate
from flows.runs.labels import correct_labels, corrected_cells
from flows.runs.rationale import RationaleRequest, ask_why, forecast_reasons
from flows.runs.report import describe, export, forecast_control, page_lines, report
