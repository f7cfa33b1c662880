"""Labels by a provider's Batch API: half the price, within a day.

The provider keeps the only memory of a batch: its metadata name the oracle that asks and a file that lists the
questions of each line. Who asks them again, after a kill or on another machine, finds and collects it by that."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from models.openai.batch_files import Line, batches_of, body_of, create_batch, lines_of, results_of
from models.openai.chat import ask_label_bills, label_answer
from models.openai.client import Reply
from models.openai.config import OpenAIConfig
from models.openai.dispatch import Errand, ask_group
from models.openai.errors import Fault, one_line
from models.openai.session import Bill, Desk, Emit, all_of, charge
from models.oracle import (
    Answer,
    AnswersPending,
    Compare,
    Label,
    OracleUnavailable,
    Question,
    Usage,
    Verdict,
    digest_of,
)
from models.prices import settled
from models.prompting.replies import parse_labels

RUNNING = ("validating", "in_progress", "finalizing", "cancelling")


class BatchErrand(Errand):
    """Comparisons go one by one, labels in batches as large as the window."""

    def _leaving(self) -> list[Sequence[Question]]:
        full = len(self._waiting) >= self._width
        if not (full or self._exhausted or not self._under_way):
            return []
        labels = [label for group in self._waiting.leave(everyone=True) for label in group]
        return [labels] if labels else []

    async def _deliver(self, group: Sequence[Question], emit: Emit) -> None:
        if isinstance(group[0], Compare):
            await ask_group(self._desk, group, emit)
        else:
            asked: Counter[Question] = Counter(group)

            def emit_each(answer: Answer) -> None:
                emit(answer)
                for _ in range(asked[answer.question] - 1):
                    emit(replace(answer, cost=0, usage=Usage()))

            try:
                labels = [question for question in asked if isinstance(question, Label)]
                await _Collection(self._desk, labels, emit_each).collect()
            except Fault as fault:
                raise OracleUnavailable(f"{self._desk.config.host} does not take the batch: {fault}") from None


@dataclass
class _Sent:
    """A batch at the provider, and those of its lines that hold questions of ours."""

    id: str
    lines: list[Line] = field(default_factory=list)


def short_digest(question: Question) -> str:
    return digest_of(question.content)[:16]


class _Collection:
    """Labels until each has its answer. A line that expired goes into a new batch; one that came back unreadable, or
    was rejected, is asked again at once."""

    def __init__(self, desk: Desk, labels: Sequence[Label], emit: Emit) -> None:
        self._desk = desk
        self._emit = emit
        self._open = {short_digest(bill.question): bill for bill in desk.bills(labels)}
        self._failed: set[tuple[str, str]] = set()  # batch and question
        self._deadline = time.monotonic() + desk.config.batch_wait

    async def collect(self) -> None:
        for _ in range(self._desk.config.attempts):
            sent = await self._found()
            placed = {digest for batch in sent for line in batch.lines for digest, _ in line.questions}
            sent += await self._submitted([digest for digest in self._open if digest not in placed])
            pending = [unfinished for batch in sent if (unfinished := await self._take(batch))]
            if pending:
                raise AnswersPending("; ".join(pending) + ": run the same command again to collect it")
            if not self._open:
                return
        for bill in self._open.values():
            note = f"not reached in {self._desk.config.attempts} batches"
            self._emit(bill.answer(Verdict.UNREADABLE, self._desk.by, note=note))

    async def _found(self) -> list[_Sent]:
        """Batches that were sent before, each question with the newest that holds it."""
        looking, found = set(self._open), list[_Sent]()
        async for batch in batches_of(self._desk):
            if not looking:
                break
            sent = _Sent(batch["id"])
            for line in await lines_of(self._desk, batch):
                ours = {digest for digest, _ in line.questions if (sent.id, digest) not in self._failed}
                if ours & looking:
                    looking -= ours
                    sent.lines.append(line)
            if sent.lines:
                found.append(sent)
        return found

    async def _submitted(self, digests: Sequence[str]) -> list[_Sent]:
        waiting = self._desk.bounds.departures()
        for digest in digests:
            question = self._open[digest].question
            if isinstance(question, Label):
                waiting.add(question)
        groups = [[self._open[short_digest(label)] for label in group] for group in waiting.leave(everyone=True)]
        return [_Sent(name, lines) async for name, lines in create_batch(self._desk, groups, short_digest)]

    async def _take(self, sent: _Sent) -> str:
        """Give out what a batch has answered; or say how far it is."""
        while (batch := await self._look(sent.id)).get("status") in RUNNING:
            if time.monotonic() + self._desk.config.batch_poll > self._deadline:
                counts = batch.get("request_counts") or {}
                progress = f"{counts.get('completed', 0)} of {counts.get('total', len(sent.lines))} requests done"
                return f"batch {sent.id} at {self._desk.config.host} is still running, {progress}"
            await asyncio.sleep(self._desk.config.batch_poll)
        if batch.get("status") == "failed":
            host, reason = self._desk.config.host, _reason(batch, self._desk.config)
            raise OracleUnavailable(f"{host} rejected batch {sent.id} ({reason}): ask without provider_batch")
        results = await results_of(self._desk, batch)
        lost = batch.get("status") == "completed"  # a line without a result may have been paid for
        work = [self._read(sent, line, results.get(line.custom_id, {}), lost) for line in sent.lines]
        await all_of(work)
        return ""

    async def _look(self, name: str) -> dict[str, Any]:
        return await self._desk.wire.fetch(partial(self._desk.wire.client.batches.with_raw_response.retrieve, name))

    async def _read(self, sent: _Sent, line: Line, result: dict[str, Any], lost: bool) -> None:
        ours = {place: self._open[digest] for place, (digest, _) in enumerate(line.questions) if digest in self._open}
        response = result.get("response")
        status = response.get("status_code") if isinstance(response, dict) else None
        if (body := body_of(result)) is not None:
            self._close(line, ours)
            await self._read_labels(line, ours, Reply.of("", body))
        elif isinstance(status, int) and 400 <= status < 500 and status not in (408, 429):
            self._close(line, ours)
            await ask_label_bills(self._desk, list(ours.values()), self._desk.config.asks, self._emit)
        elif lost and not result:
            self._close(line, ours)
            self._book(line, ours, Reply.of("", None))
            await ask_label_bills(self._desk, list(ours.values()), self._desk.config.asks - 1, self._emit)
        else:
            self._failed |= {(sent.id, digest) for digest, _ in line.questions}

    def _close(self, line: Line, ours: Iterable[int]) -> None:
        for place in ours:
            del self._open[line.questions[place][0]]

    async def _read_labels(self, line: Line, ours: dict[int, Bill], reply: Reply) -> None:
        desk, said = self._desk, reply.said
        self._book(line, ours, reply)
        values = {} if said.refused else parse_labels(said.text, len(line.questions))
        rest = []
        for place, bill in ours.items():
            if place in values:
                self._emit(label_answer(desk, bill, values[place], raw=said.text))
            else:
                rest.append(bill)
        if rest and said.refused and len(line.questions) == 1:
            self._emit(rest[0].answer(Verdict.REFUSED, desk.by, raw=said.text, note=said.note))
        elif rest:
            await ask_label_bills(desk, rest, desk.config.asks - 1, self._emit)

    def _book(self, line: Line, ours: dict[int, Bill], reply: Reply) -> None:
        """The line's cost over all its questions, though some may have been answered and booked by an earlier run."""
        first = next(iter(ours.values()))
        bills = [ours.get(place) or Bill(first.question, weight) for place, (_, weight) in enumerate(line.questions)]
        tokens = reply.tokens or self._desk.bounds.request([bill.question for bill in ours.values()])
        charge(bills, tokens, settled(self._desk.bounds.chat, tokens, batch=True))


def _reason(batch: dict[str, Any], config: OpenAIConfig) -> str:
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else {}
    return one_line(str(first.get("message") if isinstance(first, dict) else first) or "no reason given", config)
