"""Votes of people, replayed from a table.

The table is a CSV file with the columns example, feature, worker and label (1 or 0, also yes or no; empty where the
worker abstained). Voter k is the k-th worker in the table to have labelled that example with that feature. What people
answered to comparisons is in a second table, or in this one alone. What is in no table is refused."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from models.oracle import (
    Answer,
    Choose,
    Compare,
    Family,
    Feature,
    Money,
    OracleError,
    OracleIdentity,
    Question,
    Usage,
    Verdict,
)
from models.people.recorded_comparisons import COLUMNS as COMPARISON_COLUMNS
from models.people.recorded_comparisons import RecordedComparisons, read_comparisons
from models.prompting import chosen_answer, named_by_words

COLUMNS = ("example", "feature", "worker", "label")
VALUES = {"1": Verdict.YES, "yes": Verdict.YES, "true": Verdict.YES}
VALUES |= {"0": Verdict.NO, "no": Verdict.NO, "false": Verdict.NO, "": Verdict.REFUSED}
AT_ONCE = 4_096
NOT_THERE = "not in the table of recorded votes"

Ballots = dict[tuple[str, str], list[tuple[str, Verdict]]]  # of an example and a feature, in the order of the table


class RecordedVotes:
    width = AT_ONCE

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

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        return [self._price] * len(questions)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        return map(self._answer, questions)

    def _answer(self, question: Question) -> Answer:
        if isinstance(question, Family):
            return named_by_words(question, "the names themselves")
        if isinstance(question, Compare):
            return self.comparisons.answer(question)
        if isinstance(question, Choose):
            return self._choice(question)
        vote = self._vote(question.example.id, question.feature, question.voter)
        if vote is None:
            return Answer(question, Verdict.REFUSED, "nobody", note=NOT_THERE)
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
            return Answer(question, Verdict.REFUSED, "nobody", note=NOT_THERE)
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
