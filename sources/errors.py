"""What can be wrong with a data set: as a whole, or with one file of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class DatasetError(Exception):
    """The data set cannot be used; the message is one line that names the value and the remedy."""


class Vanished(DatasetError):
    """The content of an example, which was there when the data set was read, is gone or has become another one."""


class Unreadable(Exception):
    """One file cannot be read; the message says why, in a few words. Loading goes on without it."""
