"""Prefect tasks: thin, one batch of questions each. The store is the only cache."""

from tasks.ask import elicit, label, label_batch, probed, without_tracebacks
from tasks.publish import ProgressArtifact, publish, publish_enrichment
