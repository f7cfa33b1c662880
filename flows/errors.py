"""Errors in what the user gave."""

from __future__ import annotations


class UsageError(Exception):
    """Bad input; the message is one line that names the value and the remedy."""


class ServerError(Exception):
    """The Prefect API cannot be reached; the message is one line with the remedy."""
