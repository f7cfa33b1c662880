"""What a discovery does as it happens, for pages that follow it: live.jsonl in the run folder.

Every execution starts it again. A run that goes on after a kill replays its questions, so that the file ends as if
it had never stopped. It is locked while it is written, by which readers tell whether the run goes on."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.flows.discover.findings import Finding, KnownFeature, Progress
from twothirds.flows.discover.live.commands import ControlCommand
from twothirds.flows.discover.live.steered_loop import Effect
from twothirds.models import MICRO, Answer, AnswersPending, Compare, Feature, Money
from twothirds.reports.run import LIVE
from twothirds.sources import Example


class LiveLog:
    """A file that cannot be written is done without: nobody can follow the run then."""

    def __init__(self, folder: Path, begun: dict[str, Any]) -> None:
        self._folder, self._begun = folder, begun
        self._file: IO[str] | None = None
        self._asked = self._known = 0

    def __enter__(self) -> LiveLog:
        with suppress(OSError):
            file = (self._folder / LIVE).open("a", encoding="utf-8", errors="backslashreplace")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(0)
                self._file = file
            except OSError:  # another execution in the same folder writes it
                file.close()
        self._write("begun", **self._begun, at=datetime.now(UTC).isoformat(timespec="seconds"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, AnswersPending):
            self._wait(error)
        elif error is not None:
            self._write("ended", reason="interrupted", message=" ".join(str(error).split()))
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def asking(self, questions: Iterable[Any]) -> None:
        """Before they are sent. Questions whether two features mean the same are passed over."""
        shown = [_question(question) for question in questions if isinstance(question, Compare)]
        if shown:
            self._write("asking", questions=shown)

    def labelling(self, features: Iterable[Feature]) -> None:
        self._write("labelling", features=[[feature.name, feature.definition] for feature in features])

    def round(self, progress: Progress, found: list[Finding], cost: Money) -> None:
        """What the last round has brought."""
        for number, (_, answer) in enumerate(progress.asked[self._asked :], start=self._asked + 1):
            self._write("answer", number=number, **_answer(answer))
        self._asked = len(progress.asked)
        for known in progress.known_features[self._known :]:
            self._write("feature", counts=True, given=known.by or "at the start", **_feature(known))
        self._known = len(progress.known_features)
        flags = dict(zip((finding.feature.name for finding in progress.findings), progress.flags, strict=False))
        for finding in found:
            self._write("feature", counts=bool(flags.get(finding.feature.name)), **_feature(finding))
        self._write(
            "state",
            queries=progress.queries,
            features=len(progress.findings),
            waiting=progress.waiting,
            given=len(progress.known_features),
            counting=progress.interesting_distinct,
            g=round(progress.g, 6),
            usd=cost / MICRO,
        )

    def remaining(self, examples: int, answers: int, cost: Money) -> None:
        """The examples that were not compared are being labelled."""
        self._write("rest", examples=examples, answers=answers, usd=cost / MICRO)

    @contextmanager
    def waiting(self, pending: AnswersPending) -> Iterator[None]:
        """While the run waits for answers. One that ends to wait for them says so too."""
        self._wait(pending)
        yield
        self._write("waiting", whom="", message="")

    def _wait(self, pending: AnswersPending) -> None:
        message = " ".join(str(pending).split())
        self._write("waiting", whom="people" if pending.items else "answers", message=message)

    def end(self, progress: Progress) -> None:
        """Once its results are written."""
        self._write("ended", reason=str(progress.stopped), message=progress.message)

    def steered(self, command: ControlCommand, effect: Effect) -> None:
        """What a person wanted, once the run applies it; `rejected` says why it does not."""
        fields = command.model_dump(mode="json", include={"action", "by", "usd"})
        self._write("steered", **fields, words=command.words, gone=effect.gone, rejected=effect.rejected)

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
    return [example.id for example in examples]


def _answer(answer: Answer) -> dict[str, Any]:
    asked = _question(answer.question) if isinstance(answer.question, Compare) else {}
    features = [[named.feature.name, named.feature.definition, list(named.shown)] for named in answer.features]
    return asked | {"verdict": answer.verdict.value, "by": answer.by, "features": features, "note": answer.note}


def _feature(known: Finding | KnownFeature) -> dict[str, Any]:
    labels = known.labels
    asked = known.answer.question if isinstance(known, Finding) else None
    return {
        "name": known.feature.name,
        "definition": known.feature.definition,
        "yes": int(np.sum(labels == 1)),
        "no": int(np.sum(labels == 0)),
        "unknown": int(np.sum(labels == UNKNOWN)),
        "dropped": known.dropped,
        "twin": str(known.twin) if known.twin else "",
        "examples": _ids(asked.examples) if isinstance(asked, Compare) else [],
    }
