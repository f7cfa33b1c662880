"""Check a store: keys are computed again, texts compared with their checksums, the books added up."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import orjson

from flows.progress import SILENT, Display
from flows.reviewing.mturk import claim_keys
from models import NO_QUESTION, Answer, in_usd, stored_key
from store import Store
from store.ledger import StoredAnswer, identity_digest

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


def check(store: Store, display: Display = SILENT) -> CheckResult:
    """Read the whole store and change nothing in it."""
    found = CheckResult()
    if store.is_incomplete:
        found.add(
            "of the file or the books",
            "file: it was copied from a store in use, or its -wal file was removed: the latest commits are missing "
            "unless that file is put beside it; if nothing is missing, go on with the file that `store backup` writes",
        )
    with display.waiting("reading the file and adding up the books"):
        for line in store.check.problems():
            found.add("of the file or the books", line)
        found.sizes = store.housekeeping.sizes()
    total, keys = store.answers.count(), _Keys(store)
    with display.counting(total, "answers"):
        for page in store.check.answers():
            for stored in page:
                found.answers += 1
                answer = _read(stored.answer)
                found.replies += bool((answer or {}).get("raw"))
                for kind, line in _problems_of(stored, answer, keys):
                    found.add(kind, f"answer {stored.key}: {line}")
            display.update(found.answers, f"{len(found.problems)} problems")
    found.say_how_many_more()
    if others := _open_to_others(store):
        found.notes.append(others)
    orphans = store.check.orphans()
    if orphans.claims:
        found.notes.append(
            f"{orphans.claims:,} claims of runs that have died hold {in_usd(orphans.micro, 6)}: the next run frees them"
        )
    return found


def _open_to_others(store: Store) -> str:
    """What to say where other users of the machine can read an SQLite file; it is created for its owner alone."""
    database = store.engine.url.database if store.engine.dialect.name == "sqlite" else None
    mode = stat.S_IMODE(os.stat(database).st_mode) if database else 0
    return f"other users of this machine can open it (mode {mode:o}): chmod 600 {database}" if mode & 0o077 else ""


def _problems_of(stored: StoredAnswer, answer: dict[str, Any] | None, keys: _Keys) -> Iterator[tuple[str, str]]:
    if not stored.is_unaltered:
        yield "altered", "question, answer or cost is not what was written"
    identity, question = _read_exactly(stored.identity), _read(stored.question)
    if identity is None or identity_digest_of(stored.oracle, stored.identity) != stored.identity_digest:
        yield "altered oracle", f"the description of {stored.oracle} is not what was written"
    if identity is None or question is None or answer is None:
        yield "unreadable", "oracle, question or answer is no JSON object"
        return
    if not keys.fits(stored.key, identity, question, answer):
        yield "key", "its key is not that of its oracle and question"
    if not stored.booked:
        yield "cost", f"no paid charge of {stored.cost} micro-dollars is booked for it"
    if identity.get("kind") != "mturk" and not _makes_sense(stored, question, answer):
        yield "unreadable", "its kind, verdict or cost makes no sense"


class _Keys:
    """The keys that answers should have."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def fits(self, key: str, identity: dict[str, Any], question: dict[str, Any], answer: dict[str, Any]) -> bool:
        if identity.get("kind") == "mturk":  # paid by the task, not by the question
            return key == f"mturk/bonus/{answer.get('assignment')}" or key in self._of_tasks
        asked, _, _number = key.partition("/withdrawn/")
        return asked == stored_key(identity, question)

    @cached_property
    def _of_tasks(self) -> set[str]:
        return {key for hit in self._store.queue.mturk.hits() for key in claim_keys(hit)}


def _makes_sense(stored: StoredAnswer, question: dict[str, Any], answer: dict[str, Any]) -> bool:
    try:
        read = Answer.from_json(NO_QUESTION, answer, cached=True)
    except (KeyError, TypeError, ValueError):
        return False
    return read.cost == stored.cost and question.get("kind") == stored.kind


@lru_cache(maxsize=256)
def identity_digest_of(oracle: str, identity: str) -> str:
    return identity_digest(oracle, json.loads(identity))


def _read(text: str) -> dict[str, Any] | None:
    """Much of a check is reading JSON. orjson reads no lone surrogates."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return _read_exactly(text)
    return value if isinstance(value, dict) else None


@lru_cache(maxsize=256)
def _read_exactly(text: str) -> dict[str, Any] | None:
    """For what orjson cannot read, and for identities: they may hold longer numbers, and most answers share theirs."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
