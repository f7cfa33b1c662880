"""Prefect tasks: thin, one batch of questions each. The store is the only cache."""
