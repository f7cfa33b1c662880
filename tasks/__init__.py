"""Prefect tasks: thin, one batch of questions each. The store is the only cache."""

from tasks.elicit import elicit
from tasks.label import label, label_batch
from tasks.probe import probed
from tasks.publish import ProgressArtifact, announce_feature, publish, publish_enrichment
from tasks.run_log import without_tracebacks
from tasks.telemetry import exporting
