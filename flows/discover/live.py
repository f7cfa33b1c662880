"""What a discovery does as it happens, for pages that follow it: live.jsonl in the run folder.

Every execution writes it anew. A run that goes on after a kill replays its questions, so that the file ends as if
it had never stopped. It is locked while it is written, by which readers tell whether the run goes on.

What people who watch it want is in steer.jsonl: lines are only added, with who and when, and the run adds after how
many questions it has heeded each. So a run is a function of data, settings, seed, answers and that log."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from discovery import UNKNOWN
from flows.discover.findings import Finding, Progress, StopReason
from flows.discover.loop import Loop
from models import MICRO, Answer, Compare, Feature, Money
from reports import Run
from reports.curation import append_events, plan_change, read_events, record_change
from reports.run import LIVE, STEER, RunError
from sources import Example


class LiveLog:
    """A file that cannot be written is done without: nobody can follow the run then."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self._folder, self._about = folder, about
        self._file: IO[str] | None = None
        self._asked = 0

    def __enter__(self) -> LiveLog:
        with suppress(OSError):
            file = (self._folder / LIVE).open("a", encoding="utf-8", errors="backslashreplace")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(0)
                self._file = file
            except OSError:  # another execution in the same folder writes it
                file.close()
        self._write("begun", **self._about, at=datetime.now(UTC).isoformat(timespec="seconds"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._write("ended", reason="interrupted", message=" ".join(str(error).split()))
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def asking(self, questions: Iterable[Any]) -> None:
        """Before they are sent. Questions whether two features mean the same are passed over."""
        shown = [_question(one) for one in questions if isinstance(one, Compare)]
        if shown:
            self._write("asking", questions=shown)

    def labelling(self, features: Iterable[Feature]) -> None:
        self._write("labelling", features=[[one.name, one.definition] for one in features])

    def round(self, progress: Progress, found: list[Finding], cost: Money) -> None:
        """What the last round has brought."""
        for number, (_, answer) in enumerate(progress.asked[self._asked :], start=self._asked + 1):
            self._write("answer", number=number, **_answer(answer))
        self._asked = len(progress.asked)
        flags = dict(zip((one.feature.name for one in progress.findings), progress.flags, strict=False))
        for one in found:
            self._write("feature", counts=bool(flags.get(one.feature.name)), **_feature(one))
        self._write(
            "state",
            queries=progress.queries,
            features=len(progress.findings),
            counting=progress.interesting_distinct,
            g=round(progress.g, 6),
            usd=cost / MICRO,
        )

    def end(self, progress: Progress) -> None:
        self._write("ended", reason=str(progress.stopped), message=progress.message)

    def steered(self, event: dict[str, Any]) -> None:
        """What a person wanted, once the run heeds it."""
        self._write(
            "steered", action=event["action"], name=event.get("name", ""), to=event.get("to", ""), by=event["by"]
        )

    def _write(self, kind: str, **event: Any) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.write(json.dumps({"kind": kind} | event, ensure_ascii=False) + "\n")
                self._file.flush()


def _question(asked: Compare) -> dict[str, Any]:
    return {
        "question": asked.kind.value,
        "examples": _ids(asked.examples),
        "without": _ids(asked.without),
        "known": len(asked.known),
    }


def _ids(examples: Iterable[Example]) -> list[str]:
    return [one.id for one in examples]


def _answer(answer: Answer) -> dict[str, Any]:
    asked = _question(answer.question) if isinstance(answer.question, Compare) else {}
    named = [[one.feature.name, one.feature.definition, list(one.shown)] for one in answer.features]
    return asked | {"verdict": answer.verdict.value, "by": answer.by, "features": named, "note": answer.note}


def _feature(one: Finding) -> dict[str, Any]:
    labels = one.labels
    return {
        "name": one.feature.name,
        "definition": one.feature.definition,
        "yes": int(np.sum(labels == 1)),
        "no": int(np.sum(labels == 0)),
        "unknown": int(np.sum(labels == UNKNOWN)),
        "dropped": one.dropped,
        "twin": str(one.twin) if one.twin else "",
        "examples": _ids(one.answer.question.examples) if isinstance(one.answer.question, Compare) else [],
    }


class Steering:
    """What people want of a run while it runs: to stop, to veto or to rename features. Read between questions."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / STEER
        self._before = len(self._events())  # a wish to stop that an earlier execution has heeded is over
        self._heeded: set[int] = set()
        self._seen: tuple[int, int] | None = None

    def heed(self, loop: Loop, live: LiveLog) -> None:
        """Do what is wanted and was not done yet; after a kill at the same question as before."""
        if (state := self._state()) == self._seen:
            return
        self._seen = state
        events, queries = self._events(), loop.progress.queries
        done = {one["event"]: one["queries"] for one in events if one["action"] == "heeded"}
        for number, event in enumerate(events):
            if number in self._heeded or event["action"] not in ("stop", "veto", "rename"):
                continue
            if done.get(number, queries) > queries:
                self._seen = None  # its turn comes later
                continue
            self._heeded.add(number)
            if event["action"] == "stop" and number < self._before:
                continue
            if number not in done:
                self._note({"action": "heeded", "event": number, "queries": queries})
            if event["action"] == "stop":
                loop.progress.stopped = StopReason.STOPPED
            elif event["action"] == "veto":
                loop.veto(event["name"], event["by"])
            live.steered(event)

    def settle(self) -> None:
        """Once the run folder is written: vetoed features are dropped from it and others renamed, as curation does, by
        whoever wanted it; what was settled before is not done again."""
        events = self._events()
        settled = {one["event"] for one in events if one["action"] == "settled"}
        for number, event in enumerate(events):
            if event["action"] not in ("veto", "rename") or number in settled:
                continue
            run, (action, arguments) = Run(self._folder), _change(event)
            with suppress(RunError):  # the feature never came up, or has another name by now
                record_change(run, plan_change(run, action, arguments), by=event["by"])
            self._note({"action": "settled", "event": number})

    def _note(self, event: dict[str, Any]) -> None:
        with suppress(OSError):  # without it the run is still steered, only not the same way again
            append_events(self._path, lambda _: [event])

    def _state(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
            return found.st_mtime_ns, found.st_size
        except OSError:
            return 0, 0

    def _events(self) -> list[dict[str, Any]]:
        """Those that are whole; nothing where the file cannot be read: nobody steers the run then."""
        with suppress(RunError):
            return [one for one in read_events(self._path) if _is_whole(one)]
        return []


def _is_whole(event: dict[str, Any]) -> bool:
    names = {"stop": ("by",), "veto": ("by", "name"), "rename": ("by", "name", "to")}.get(str(event.get("action")), ())
    return "action" in event and all(isinstance(event.get(name), str) for name in names)


def _change(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if event["action"] == "veto":
        return "drop", {"names": [event["name"]]}
    return "rename", {"name": event["name"], "to": event["to"]}
