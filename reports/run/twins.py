"""Which feature of a run repeats or inverts an earlier one, where discover did not note it or curation changed them."""

from __future__ import annotations

from collections.abc import Sequence

from discovery import Labels, find_twin

SAME, COMPLEMENT = "same as ", "complement of "  # as discover writes them, before the name of the earlier feature


def twins_of(names: Sequence[str], labels: Sequence[Labels], judged: Sequence[bool] = ()) -> list[str]:
    """The column `twin` of features.csv, by words and labels alone: discover also knows which words are close, and may
    have asked. Of two features that are `judged` neither becomes the twin of the other."""
    return [_twin_of(n, names, labels, judged or [False] * len(names)) for n in range(len(names))]


def _twin_of(n: int, names: Sequence[str], labels: Sequence[Labels], judged: Sequence[bool]) -> str:
    others = [other for other in range(n) if not (judged[n] and judged[other])]
    twin = find_twin(names[n], labels[n], [names[other] for other in others], [labels[other] for other in others])
    if twin is None:
        return ""
    return (SAME if twin.kind == "same" else COMPLEMENT) + names[others[twin.other]]
