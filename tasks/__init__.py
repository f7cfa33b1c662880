"""Prefect tasks: thin, one batch of questions each. The store is the only cache."""

from twothirds.tasks.ask import elicit, label, label_batch, without_tracebacks
from twothirds.tasks.publish import ProgressArtifact, publish, publish_enrichment
