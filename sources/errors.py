"""What can be wrong with a data set: as a whole, or with one file of it."""

from __future__ import annotations


class DatasetError(Exception):
    """The data set cannot be used; the message is one line that names the value and the remedy."""


class DatasetMissing(DatasetError):
    """Nothing is where the data set should be, or it cannot be reached: it may come back."""


class Vanished(DatasetError):
    """The content of an example is gone or has changed since the data set was read."""


class Unreadable(Exception):
    """One file cannot be read; the message says why, in a few words. Loading goes on without it."""
