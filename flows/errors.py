"""Errors in what the user gave."""

from __future__ import annotations


class UsageError(Exception):
    """Bad input; the message is one line that names the value and the remedy."""
