"""Prefect tasks: thin, one batch of questions each. The store is the only cache."""

from tasks.elicit import elicit, probed
from tasks.label import label, label_batch
from tasks.publish import ProgressArtifact, publish, publish_enrichment
from tasks.run_log import without_tracebacks
