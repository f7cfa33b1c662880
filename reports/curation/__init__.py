"""Changes to the features of a run, and their log."""

from reports.curation.changes import Change, LabelRequest
from reports.curation.log import CuratedRun, Votes, effective, plan_change, read_log, record_change, undo
