"""What the page shows of each feature: its question, shares, votes, and pairs that differ in little else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Kind
from twothirds.reports.page.truth import AgainstTruth
from twothirds.reports.run import COMPLEMENT, KNOWN, MICRO, SAME, AnsweredComparison, Findings, FoundFeature
from twothirds.sources import Example
from twothirds.studio.web import ExampleTile, percent, plural, share_bar

CANDIDATE_PAIRS = 200


Show = Callable[..., "ExampleTile"]  # of a row, a feature, and whether the votes contradict the row's side


@dataclass(frozen=True)
class MinimalPair:
    having: int  # rows of the examples
    lacking: int
    differing: list[int]  # the other features in which the two are known to differ


def minimal_pairs(
    matrix: NDArray[np.int8], feature: int, doubtful: NDArray[np.bool_], wanted: int = 3
) -> list[MinimalPair]:
    """The pairs that differ in the feature and in as few others as possible; no example is used twice.

    Of pairs that are equally close, those with undoubted labels come first. `matrix` is features × examples."""
    labels = matrix[feature]
    having, lacking = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if not having.size or not lacking.size:
        return []
    others = np.delete(matrix, feature, axis=0)
    positives, negatives = (others == 1).astype(np.float32), (others == 0).astype(np.float32)
    unknown = (others == UNKNOWN).astype(np.float32).sum(axis=0)
    distance = positives[:, having].T @ negatives[:, lacking] + negatives[:, having].T @ positives[:, lacking]
    distance += (0.25 * doubtful + 0.5 * unknown)[having][:, None] + (0.25 * doubtful + 0.5 * unknown)[lacking][None, :]
    flat = distance.ravel()
    nearest = np.argpartition(flat, min(CANDIDATE_PAIRS, flat.size) - 1)[:CANDIDATE_PAIRS]
    pairs: list[MinimalPair] = []
    used: set[int] = set()
    for place in sorted(nearest.tolist(), key=lambda place: (flat[place], place)):
        a, b = int(having[place // lacking.size]), int(lacking[place % lacking.size])
        if a in used or b in used:
            continue
        used |= {a, b}
        known = (matrix[:, a] != UNKNOWN) & (matrix[:, b] != UNKNOWN)
        differing = np.flatnonzero(known & (matrix[:, a] != matrix[:, b])).tolist()
        pairs.append(MinimalPair(a, b, [other for other in differing if other != feature]))
        if len(pairs) == wanted:
            break
    return pairs


EXAMPLES_PER_SIDE = 12  # examples of either side in a card
ASKED_FOR = {
    Kind.TWO_OF_THREE: "What do two of the three share that the third lacks?",
    Kind.SHARED: "What do at least two of these share that at least one lacks?",
    Kind.ONE_OR_TWO: "What do one or two of the three have that the others lack?",
    Kind.PAIR: "What does one of the two have that the other lacks?",
    Kind.ONE_OF_THREE: "What does one of the three have that the other two lack?",
    Kind.LEFT_RIGHT: "What do all on the left have that none on the right has?",
    Kind.GROUPS: "What do clearly more of one group have than of the other?",
    Kind.TAG: "What is there to say about this one?",
}


def kinds_asked(comparisons: Sequence[AnsweredComparison]) -> list[tuple[str, int]]:
    """The kinds of question that were asked, in words, and how often; the most frequent first."""
    counts = Counter(asked.kind for asked in comparisons)
    return [(ASKED_FOR.get(kind, kind.value), count) for kind, count in counts.most_common()]


def card_example(
    findings: Findings,
    examples: Sequence[Example | None],
    places: Mapping[int, int],
    row: int,
    found: FoundFeature,
    contradicted: bool = False,
    media: str = "",
) -> ExampleTile:
    """`places` are those of the examples that the page carries, by row; `media` is where their pictures are served."""
    example = examples[row]
    text = (example.text if example else None) or ""
    return ExampleTile(
        place=places.get(row, -1),
        name=findings.ids[row],
        text=text,
        pictured=not text or (example is not None and example.image is not None),
        src=f"{media}{row}/small-still" if media else "",
        contradicted=contradicted,
        predicted=float(found.probability[row]) if found.predicted[row] else None,
    )


def feature_cards(
    findings: Findings, show: Show, carried: NDArray[np.intp], truth: AgainstTruth | None
) -> list[dict[str, Any]]:
    """What the template shows of each feature; pairs and strips are of the examples that the page carries."""
    in_page = findings.matrix[:, carried]
    rows = {name: row for row, name in enumerate(findings.ids)}
    cards = []
    for number, (found, marks) in enumerate(zip(findings.found, findings.marks, strict=True)):
        card = outlined(findings, number, marks, rows, show) | detailed(findings, number, show, carried)
        card["positives"] = [show(row, found) for row in _strip(carried, in_page[number] == 1)]
        card["negatives"] = [show(row, found) for row in _strip(carried, in_page[number] == 0)]
        card["truth"] = truth.matches[number] if truth else None
        cards.append(card)
    return cards


def outlined(
    findings: Findings, number: int, marks: tuple[bool, bool], rows: Mapping[str, int], show: Show
) -> dict[str, Any]:
    """What a list shows of a feature. `marks` say whether it is interesting and distinct."""
    found = findings.found[number]
    yes, no = found.positives, found.labelled - found.positives
    having, lacking = _question(found, rows, show)
    return {
        "order": number + 1,
        "found": found,
        "question": ASKED_FOR.get(found.asked.kind, "") if found.asked else "",
        "having": having,
        "lacking": lacking,
        "yes": yes,
        "no": no,
        "unknown": int((found.labels[findings.labelled] == UNKNOWN).sum()),
        "share": yes / max(yes + no, 1),
        "bar": share_bar(yes, no, int((found.labels[findings.labelled] == UNKNOWN).sum())),
        "doubtful_labels": int((found.doubtful | found.contradicted(findings.ids)).sum()),
        "marks": _marks(found, *marks, findings.sample_of(found)),  # style and words
    }


def detailed(findings: Findings, number: int, show: Show, carried: NDArray[np.intp]) -> dict[str, Any]:
    """What the card of a feature shows beside its outline."""
    found = findings.found[number]
    vote_counts, in_page = found.vote_counts, findings.matrix[:, carried]
    voted_twice = vote_counts.yes + vote_counts.no >= 2
    return {
        "pairs": [
            {
                "having": show(int(carried[pair.having]), found),
                "lacking": show(int(carried[pair.lacking]), found),
                "differing": [findings.found[other].name for other in pair.differing],
            }
            for pair in minimal_pairs(in_page, number, (found.doubtful | found.predicted)[carried])
        ],
        "votes": int(vote_counts.votes.sum()),
        "voted_twice": int(voted_twice.sum()),  # examples with two votes or more
        "unanimous": int((voted_twice & (np.minimum(vote_counts.yes, vote_counts.no) == 0)).sum()),
        "abstained": int(vote_counts.abstained.sum()),
        "predicted": int(found.predicted.sum()),  # labels that are not the oracle's
        "predicted_yes": int((found.predicted & (found.labels == 1)).sum()),
        "usd": found.cost / MICRO,
        "truth": None,
    }


def _strip(carried: NDArray[np.intp], chosen: NDArray[np.bool_]) -> list[int]:
    """A few rows at random, the same on every writing."""
    rows = carried[chosen]
    places = np.random.default_rng(len(carried)).permutation(len(rows))[:EXAMPLES_PER_SIDE]
    return [int(rows[place]) for place in sorted(places)]


def _question(
    found: FoundFeature, row_of: Mapping[str, int], show: Show
) -> tuple[list[ExampleTile], list[ExampleTile]]:
    """The examples asked about: those said to have the feature, and those said to lack it."""
    asked = found.asked
    if asked is None:
        return [], []
    rows = {name: row_of[name] for name in (*asked.examples, *asked.without) if name in row_of}
    having = asked.having or [name for name, row in rows.items() if found.labels[row] == 1]
    lacking = [name for name in rows if name not in having]
    return (
        [show(rows[name], found, bool(found.labels[rows[name]] == 0)) for name in having if name in rows],
        [show(rows[name], found, bool(found.labels[rows[name]] == 1)) for name in lacking],
    )


TWIN_WORDS = {SAME: "the same as", COMPLEMENT: "the opposite of"}


def _marks(found: FoundFeature, interesting: bool, distinct: bool, sample: str) -> list[tuple[str, str]]:
    source = f"added by {found.added_by}" if found.added_by else "known"
    marks = [("plain", source)] if found.question == KNOWN else []
    if not interesting:
        marks.append(("plain", f"rare or nearly always{sample}"))
    if not distinct:
        marks.append(("plain", "much like an earlier one"))
    for start, words in TWIN_WORDS.items():
        if found.twin.startswith(start):
            marks.append(("plain", f"{words} “{found.twin.removeprefix(start)}”"))
    if found.is_doubtful:
        marks.append(("bad", "doubtful: its own question contradicts it"))
    if found.is_divided:
        marks.append(("bad", "divided: more than a fifth of its labels are doubtful"))
    if found.look:
        marks.append(("plain", f"not labelled in full: {found.look}"))
    if predicted := int(found.predicted.sum()):
        marks.append(("plain", f"{percent(predicted / max(found.labelled, 1))} of the labels predicted"))
    if found.corrected:
        marks.append(("good", f"{plural(len(found.corrected), 'label')} checked by people"))
    if found.made:
        marks.append(("plain", found.made))
    return marks
