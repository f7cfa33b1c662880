"""Check a store: keys are computed again, texts compared with their checksums, the books added up."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from twothirds.flows.events import SILENT, Events
from twothirds.models import NO_QUESTION, Answer, in_usd, stored_key
from twothirds.store import PROBE, Store, StoredRequest, identity_digest, text_key

MAX_PROBLEM_LINES = 20  # lines of one kind of problem; the rest is counted


@dataclass
class CheckResult:
    """Problems are lines that say what is wrong, notes are worth knowing."""

    answers: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict, compare=False)  # bytes by kind
    replies: int = field(default=0, compare=False)  # answers that are kept with the reply as it came
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, line: str) -> None:
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_PROBLEM_LINES:
            self.problems.append(line)

    @property
    def size_line(self) -> str:
        kinds = sorted(self.sizes.items(), key=lambda stored: -stored[1])
        sizes = ", ".join(f"{kind} {size / 1e6:,.1f}" for kind, size in kinds if size)
        replies = f"; {self.replies:,} answers have raw replies, which store prune can remove" if self.replies else ""
        return f"size {sum(self.sizes.values()) / 1e6:,.1f} MB: {sizes}{replies}"

    def say_how_many_more(self) -> None:
        for kind, count in self._counts.items():
            if count > MAX_PROBLEM_LINES:
                self.problems.append(f"{count - MAX_PROBLEM_LINES:,} more: {kind}")


def check(store: Store, events: Events = SILENT) -> CheckResult:
    """Read the whole store and change nothing in it."""
    found = CheckResult()
    if store.is_incomplete:
        found.add(
            "of the file or the books",
            "file: it was copied from a store in use, or its -wal file was removed: the latest commits are missing "
            "unless that file is put beside it; if nothing is missing, go on with the file that `store backup` writes",
        )
    with events.waiting("reading the file and adding up the books"):
        for line in store.check.problems():
            found.add("of the file or the books", line)
        found.sizes = store.housekeeping.sizes()
    total = store.requests.count()
    with events.counting(total, "answers") as show:
        for page in store.check.answers():
            _check_page(store, page, found)
            show(found.answers, f"{len(found.problems)} problems")
    found.say_how_many_more()
    if others := _open_to_others(store):
        found.notes.append(others)
    orphans = store.check.orphans()
    if orphans.requests:
        found.notes.append(
            f"{orphans.requests:,} requests of runs that have died hold {in_usd(orphans.micro, 6)}: the next run ends "
            "them"
        )
    return found


def _open_to_others(store: Store) -> str:
    """What to say where other users of the machine can read an SQLite file; it is created for its owner alone."""
    database = store.engine.url.database if store.engine.dialect.name == "sqlite" else None
    mode = stat.S_IMODE(os.stat(database).st_mode) if database else 0
    return f"other users of this machine can open it (mode {mode:o}): chmod 600 {database}" if mode & 0o077 else ""


def _check_page(store: Store, page: Sequence[StoredRequest], found: CheckResult) -> None:
    keys: dict[tuple[int, int], str] = {}
    for request in page:
        for kind, line in _problems_of(request):
            found.add(kind, f"request {request.id}: {line}")
        identity = _read_exactly(request.identity)
        for position, entry in enumerate(request.entries or ()):
            if entry is None:
                continue
            question, answer = entry
            found.answers += 1
            found.replies += bool(answer.get("raw"))
            keys[request.id, position] = _key_of(identity or {}, question)
            if (identity or {}).get("kind") != "mturk" and not _makes_sense(request, question, answer):
                found.add("unreadable", f"request {request.id}: the kind or verdict of an answer makes no sense")
    leads = store.requests.positions(list(keys.values()))
    for request in page:
        own = [at for at in keys if at[0] == request.id]
        lost = sum(leads.get(keys[at]) != at for at in own)
        if own and lost != request.dropped:
            line = f"{lost} of its keys are not those of its oracle and questions, {request.dropped} should not be"
            found.add("key", f"request {request.id}: {line}")


def _problems_of(request: StoredRequest) -> Iterator[tuple[str, str]]:
    if not request.is_unaltered:
        yield "altered", "its questions and answers are not what was written"
    identity = _read_exactly(request.identity)
    if identity is None or identity_digest_of(request.oracle, request.identity) != request.identity_digest:
        yield "altered oracle", f"the description of {request.oracle} is not what was written"
    if identity is None or request.entries is None:
        yield "unreadable", "its oracle, questions or answers are no JSON objects"
        return
    answered = len(request.entries) - request.entries.count(None)
    if answered != request.answered:
        yield "unreadable", f"it has {answered} answers, but {request.answered} are counted"


def _key_of(identity: dict[str, Any], question: dict[str, Any]) -> str:
    if identity.get("kind") == "mturk":  # paid by the task, not by the question
        return text_key(str(question.get("claim")))
    return stored_key(identity, question)


def _makes_sense(request: StoredRequest, question: dict[str, Any], answer: dict[str, Any]) -> bool:
    try:
        Answer.from_json(NO_QUESTION, answer, cached=True)
    except (KeyError, TypeError, ValueError):
        return False
    return isinstance(question.get("kind"), str) and (request.kind == PROBE) is (question["kind"] == PROBE)


@lru_cache(maxsize=256)
def identity_digest_of(oracle: str, identity: str) -> str:
    return identity_digest(oracle, json.loads(identity))


@lru_cache(maxsize=256)
def _read_exactly(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
