"""Changes to the features of a run and corrections of its labels, and their logs."""

from twothirds.reports.curation.changes import Change, LabelRequest, merged_definition
from twothirds.reports.curation.corrections import (
    LABELS,
    Correction,
    LabelEdit,
    checked_by_people,
    record_corrections,
    unused_corrections,
)
from twothirds.reports.curation.events import StaleEdit, append_events, now, read_events
from twothirds.reports.curation.log import (
    CuratedRun,
    Votes,
    effective,
    plan_change,
    read_log,
    record_change,
    refuse_stale,
    undo,
)
