"""What is done with finished runs: report, export, curate, ask why."""

from twothirds.flows.runs.attributes import attributes, attributes_of
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.flows.runs.labels import correct_labels, corrected_cells
from twothirds.flows.runs.rationale import RationaleRequest, ask_why, forecast_reasons
from twothirds.flows.runs.report import describe, export, forecast_control, page_lines, report
