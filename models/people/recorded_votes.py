"""Votes of people, replayed from a table.

The table is a CSV file with the columns example, feature, worker and label (1 or 0, also yes or no; empty where the
worker abstained). Voter k is the k-th worker in the table to have labelled that example with that feature. What people
answered to comparisons is in a second table, or in this one alone. What is in no table is refused."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from twothirds.discovery import Kind, possible_counts
from twothirds.models.oracle import (
    TOGETHER,
    Answer,
    Choose,
    Compare,
    Family,
    Feature,
    Meter,
    Money,
    OracleError,
    OracleIdentity,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    Usage,
    Verdict,
    in_requests,
    replied,
)
from twothirds.models.prompting import chosen_answer, named_by_words
from twothirds.sources import Example

COMPARISON_COLUMNS = ("question", "left", "right", "answer")
BETWEEN = "|"
NO_COMPARISON = "not in the table of recorded comparisons"
SHOWN = {Kind.TWO_OF_THREE: 3, Kind.ONE_OR_TWO: 3, Kind.PAIR: 2, Kind.ONE_OF_THREE: 3, Kind.TAG: 1}  # examples
FEWEST_SHARED = 3  # examples of a question that shows any number
GIVEN_SIDES = (Kind.LEFT_RIGHT, Kind.GROUPS)  # the question itself says which example is on which side
Place = tuple[str, tuple[str, ...], tuple[str, ...]]  # what identifies a question: kind, examples, and those opposite


@dataclass(frozen=True, slots=True)
class RecordedComparison:
    """One row of the table; no feature is NONE."""

    kind: Kind
    left: tuple[str, ...]
    right: tuple[str, ...]
    feature: Feature | None
    worker: str

    @property
    def place(self) -> Place:
        return _place(self.kind, self.left, self.right)

    def question(self, of: Mapping[str, Example]) -> Compare | None:
        """As it is put to anybody; None where it is about an example that is not there."""
        left, right = self.place[1:]
        if not all(name in of for name in (*left, *right)):
            return None
        return Compare(self.kind, tuple(of[name] for name in left), tuple(of[name] for name in right))

    def answer(self, question: Compare, price: Money) -> Answer:
        none = Answer(question, Verdict.NONE, self.worker, cost=price, usage=Usage(requests=1))
        if self.feature is None:
            return none
        shown = tuple(place for place, example in enumerate(question.examples) if example.id in self.left)
        if question.kind is Kind.GROUPS:
            shown = tuple(range(len(question.examples)))
        return replace(none, verdict=Verdict.FEATURE, feature=self.feature, shown=shown)


class RecordedComparisons:
    def __init__(self, rows: Iterable[RecordedComparison] = (), *, price: Money = 0) -> None:
        self._price = price
        self._by_place: dict[Place, list[RecordedComparison]] = {}
        for row in rows:
            self._by_place.setdefault(row.place, []).append(row)

    def __len__(self) -> int:
        return len(self._by_place)

    def questions(self, examples: Sequence[Example]) -> list[Compare]:
        """Those that are about these examples only, each once, in the order of the table."""
        of = {example.id: example for example in examples}
        asked = (rows[0].question(of) for rows in self._by_place.values())
        return [question for question in asked if question is not None]

    def answer(self, question: Compare) -> Answer:
        sides = ([example.id for example in side] for side in (question.examples, question.without))
        rows = self._by_place.get(_place(question.kind, *sides), [])
        if question.voter >= len(rows):
            return Answer(question, Verdict.REFUSED, "nobody", note=NO_COMPARISON)
        return rows[question.voter].answer(question, self._price)


def read_comparisons(
    where: Path, table: csv.DictReader[str], cell: Callable[[str], str], price: Money
) -> RecordedComparisons:
    rows = []
    for number, row in enumerate(table, start=2):
        cells = {name: cell((row.get(name) or "").strip()) for name in (*COMPARISON_COLUMNS, "definition", "worker")}
        try:
            rows.append(_row(cells))
        except ValueError as error:
            raise OracleError(f"recorded:{where}, line {number}: {error}") from None
    return RecordedComparisons(rows, price=price)


def _place(kind: Kind, left: Iterable[str], right: Iterable[str]) -> Place:
    first, others = tuple(sorted(left)), tuple(sorted(right))
    return (kind.value, first, others) if kind in GIVEN_SIDES else (kind.value, tuple(sorted((*first, *others))), ())


def _row(cells: Mapping[str, str]) -> RecordedComparison:
    kinds = (*SHOWN, Kind.SHARED, *GIVEN_SIDES)
    kind = next((kind for kind in kinds if kind.value == cells["question"]), None)
    if kind is None:
        raise ValueError(f"question {cells['question']!r}: write one of {', '.join(kind.value for kind in kinds)}")
    left, right = (tuple(filter(None, map(str.strip, cells[side].split(BETWEEN)))) for side in ("left", "right"))
    having, given = len(left), len(left) + len(right)
    if kind in GIVEN_SIDES:
        if not left or not right:
            raise ValueError(f"a {kind.value} question needs examples in left and in right")
    else:
        asked = SHOWN.get(kind, max(given, FEWEST_SHARED))
        counts = possible_counts(kind, asked)
        if given != asked or (cells["answer"] and having not in counts):
            least, most = counts[0], counts[-1]
            sides = (str(least), str(asked - least)) if least == most else (f"{least} to {most}", "the others")
            raise ValueError(
                f"a {kind.value} question has {sides[0]} in left and {sides[1]} in right, not {having} and "
                f"{given - having}: separate examples by {BETWEEN}"
            )
    feature = Feature(cells["answer"], cells["definition"]) if cells["answer"] else None
    return RecordedComparison(kind, left, right, feature, cells["worker"] or "somebody")


COLUMNS = ("example", "feature", "worker", "label")
VALUES = {"1": Verdict.YES, "yes": Verdict.YES, "true": Verdict.YES}
VALUES |= {"0": Verdict.NO, "no": Verdict.NO, "false": Verdict.NO, "": Verdict.REFUSED}
AT_ONCE = 128  # requests
NO_VOTE = "not in the table of recorded votes"

Ballots = dict[tuple[str, str], list[tuple[str, Verdict]]]  # of an example and a feature, in the order of the table


class RecordedVotes:
    traits = Traits(profile="free", width=AT_ONCE)
    labeller = None  # its votes are in no store

    def __init__(
        self,
        path: Path,
        *,
        comparisons: Path | None = None,
        price: Money = 0,
        cell: Callable[[str], str] = str.strip,
    ) -> None:
        """`comparisons` is a table of comparisons; `path` may be one too, where there are no votes. `cell` turns a cell
        into what it means."""
        self._price = price
        self._votes: Ballots = {}
        self.comparisons = RecordedComparisons()
        digests = []
        for name, table in (("votes", path), ("comparisons", comparisons)):
            if table is not None:
                content = _read(table)
                digests.append((name, hashlib.sha256(content).hexdigest()))
                self._take(table, content, cell, compares=name == "comparisons")
        names = dict.fromkeys(feature for _, feature in self._votes)
        self.features = tuple(Feature(name) for name in names)
        self.most_votes = max(map(len, self._votes.values()), default=0)
        self.identity = OracleIdentity(kind="recorded", model=path.name, parameters=tuple(digests))

    def _take(self, path: Path, content: bytes, cell: Callable[[str], str], *, compares: bool) -> None:
        """What a table holds, by its first line."""
        try:
            rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
            found = rows.fieldnames or ()
            compares = compares or set(COMPARISON_COLUMNS) <= set(found)
            wanted = COMPARISON_COLUMNS if compares else COLUMNS
            if missing := [name for name in wanted if name not in found]:
                line = ", ".join(wanted)
                raise OracleError(f"recorded:{path} has no column {missing[0]!r}: its first line must be {line}")
            if compares:
                self.comparisons = read_comparisons(path, rows, cell, self._price)
            else:
                self._votes = _collect(path, rows, cell)
        except UnicodeDecodeError:
            raise OracleError(f"recorded:{path} is not UTF-8: save it as UTF-8") from None
        except csv.Error as error:
            raise OracleError(f"recorded:{path} is no CSV table ({error}): correct it") from None

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Without books: the votes were paid for before they came into the table."""
        return map(self._answer, questions)

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, self._price, 1 if self._price else TOGETHER)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002 (asking tells which have votes)
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for request in requests:
            meter.leaving(request, request.bound)
            yield replied(request, [self._answer(question) for question in request.questions])

    def _answer(self, question: Question) -> Answer:
        if isinstance(question, Family):
            return named_by_words(question, "the names themselves")
        if isinstance(question, Compare):
            return self.comparisons.answer(question)
        if isinstance(question, Choose):
            return self._choice(question)
        vote = self._vote(question.example.id, question.feature, question.voter)
        if vote is None:
            return Answer(question, Verdict.REFUSED, "nobody", note=NO_VOTE)
        worker, verdict = vote
        note = "" if verdict is not Verdict.REFUSED else "the worker abstained"
        return Answer(question, verdict, worker, cost=self._price, usage=Usage(requests=1), note=note)

    def _vote(self, example: str, feature: Feature, voter: int) -> tuple[str, Verdict] | None:
        votes = self._votes.get((example, feature.name.strip()), [])
        return votes[voter] if voter < len(votes) else None

    def _choice(self, question: Choose) -> Answer:
        """The value that was voted for, by the votes on the features that are its values."""
        votes = [self._vote(question.example.id, value, question.voter) for value in question.values]
        cast = [vote for vote in votes if vote is not None and vote[1] is not Verdict.REFUSED]
        if not cast:
            return Answer(question, Verdict.REFUSED, "nobody", note=NO_VOTE)
        chosen = [place for place, vote in enumerate(votes) if vote is not None and vote[1] is Verdict.YES]
        return chosen_answer(question, chosen, cast[0][0])


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except OSError as error:
        reason = error.strerror or "no gzip file"
        raise OracleError(f"recorded:{path} cannot be read ({reason}): give a CSV file of votes") from None


def _collect(path: Path, rows: Iterable[dict[str, str | None]], cell: Callable[[str], str]) -> Ballots:
    votes: Ballots = {}
    seen: set[tuple[str, str, str]] = set()
    for number, row in enumerate(rows, start=2):
        example, feature, worker, label = (cell((row[name] or "").strip()) for name in COLUMNS)
        if not (example and feature and worker):
            raise OracleError(f"recorded:{path}, line {number}: example, feature and worker must not be empty")
        verdict = VALUES.get(label.lower())
        if verdict is None:
            raise OracleError(f"recorded:{path}, line {number}: label {label!r}: write 1, 0 or nothing")
        if (example, feature, worker) in seen:
            raise OracleError(
                f"recorded:{path}, line {number}: {worker!r} labelled {example!r} with {feature!r} twice: keep one"
            )
        seen.add((example, feature, worker))
        votes.setdefault((example, feature), []).append((worker, verdict))
    return votes
