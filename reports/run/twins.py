"""Which feature of a run repeats or inverts an earlier one, where discover did not note it or curation changed them."""

from __future__ import annotations

from collections.abc import Sequence

from discovery import Labels, find_twin

SAME, COMPLEMENT = "same as ", "complement of "  # as discover writes them, before the name of the earlier feature


def twins_of(names: Sequence[str], labels: Sequence[Labels]) -> list[str]:
    """The column `twin` of features.csv, by words and labels alone: discover also knows which words are close."""
    found = [find_twin(name, labels[n], names[:n], labels[:n]) for n, name in enumerate(names)]
    return [(SAME if twin.kind == "same" else COMPLEMENT) + names[twin.other] if twin else "" for twin in found]
