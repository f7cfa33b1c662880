"""What is to be said of a feature's labels beside yes and no, and how sure each of them is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from reports.run import Found

SIDES = ("yes", "no", "unknown")
MARKS = ("unknown", "doubtful", "contradicted", "corrected", "predicted")
OF_A_FEATURE = ("yes", "no", *MARKS)
NOTHING = -1  # in place of a percentage


class LabelMarks:
    """Of one feature, with a row per example. Scores (how much speaks for yes) and doubts are percentages."""

    def __init__(self, found: Found, ids: Sequence[str]) -> None:
        self.name, self.definition, self.labels = found.name, found.definition, found.labels
        self.by_name: dict[str, NDArray[np.bool_]] = {
            "yes": found.labels == 1,
            "no": found.labels == 0,
            "unknown": found.labels == UNKNOWN,
            "doubtful": found.doubtful,
            "contradicted": found.contradicted(ids),
            "corrected": found.is_corrected,
            "predicted": found.predicted & ~found.is_corrected,
        }
        self.scores = _scores(found)
        self.doubts = self._doubts(found)

    def _doubts(self, found: Found) -> NDArray[np.int16]:
        doubts = np.where(self.scores == NOTHING, NOTHING, 100 - np.abs(2 * self.scores - 100))
        undecided = self.by_name["unknown"] & (found.tally.votes > 0)
        doubts[undecided | self.by_name["contradicted"]] = 100
        doubts[self.by_name["corrected"]] = 0
        return doubts.astype(np.int16)


def _scores(found: Found) -> NDArray[np.int16]:
    """A person's label; else the probability, the share of yes among the votes, or the label that is known."""
    yes, cast = found.tally.yes, found.tally.yes + found.tally.no
    said = np.where(cast > 0, yes / np.maximum(cast, 1), np.where(found.labels == UNKNOWN, np.nan, found.labels))
    said = np.where(np.isnan(found.probability), said, found.probability)
    said = np.where(found.is_corrected & (found.labels != UNKNOWN), found.labels, said)
    return np.where(np.isnan(said), NOTHING, np.round(100 * np.nan_to_num(said))).astype(np.int16)
