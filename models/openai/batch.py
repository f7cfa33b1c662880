"""Labels by a provider's Batch API: half the price, within a day.

A batch is known to the provider only: its metadata name the oracle and a file that lists the questions of each request.
A later run, after a kill or on another machine, finds and collects the batch by these."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from twothirds.models.event_loop import Background
from twothirds.models.openai.chat import ask_label_bills, form_of, label_answer, label_body
from twothirds.models.openai.client import Reply, RetriesExhausted
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.dispatch import Dispatch, ask_group
from twothirds.models.openai.errors import Fault, one_line
from twothirds.models.openai.label_groups import planned, rectangles
from twothirds.models.openai.session import Bill, Delivery, Session, all_of, charge, stop_if, tell, tell_spent
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Label,
    Leaving,
    NoteBatch,
    OracleUnavailable,
    Overcharge,
    Question,
    Usage,
    Verdict,
    digest_of,
)
from twothirds.models.prices import Tokens, bound, settled
from twothirds.models.prompting import arranged, label_chances, parse_labels
from twothirds.sources import redacted

ENDPOINT: Final = "/v1/chat/completions"
ASKED_BY = "twothirds"  # metadata: the digest of the oracle's identity
QUESTIONS = "twothirds_questions"  # metadata: the file that lists the questions
REQUESTS_LIMIT = 50_000
BYTES_LIMIT = 150_000_000
UPLOAD_SECONDS = 900.0
PAGES_LIMIT = 1_000  # of the list of batches
WEIGHT_LIMIT = 10**12  # micro-dollars
_NAME = re.compile(r"[\w./:@+=-]{1,500}", re.ASCII)
UNSENT = "not sent yet"  # noted instead of a batch's id until it has one
KEPT_SECONDS = 30 * 86_400  # results are gone after that


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch: the digests of its questions in the order they were numbered, and their weights."""

    custom_id: str
    questions: tuple[tuple[str, int], ...]
    paths: tuple[tuple[str, ...], ...]  # as in LabelForm


def asked_by(session: Session) -> str:
    return digest_of(session.identity.to_json())[:32]


async def batches_of(session: Session) -> AsyncIterator[dict[str, Any]]:
    """Our batches at the provider, newest first, without those that failed: of one that was cancelled some requests may
    have been answered, and charged."""
    from openai import omit

    after: str | None = None
    for _ in range(PAGES_LIMIT):
        send = partial(session.client.sdk.batches.with_raw_response.list, limit=100, after=after or omit)
        page = await session.client.fetch(send)
        listed = page.get("data")
        batches = [batch for batch in listed if isinstance(batch, dict)] if isinstance(listed, list) else []
        for batch in batches:
            ours = _metadata(batch).get(ASKED_BY) == asked_by(session)
            if ours and _is_name(batch.get("id")) and batch.get("status") != "failed":
                yield batch
        if not batches or not page.get("has_more") or _is_old(batches[-1]) or batches[-1].get("id") == after:
            return
        if not _is_name(batches[-1].get("id")):
            return
        after = str(batches[-1]["id"])


def _is_name(value: object) -> bool:
    """Whether it can stand in an address as the name of a batch or a file."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value)) and ".." not in value


def _metadata(batch: dict[str, Any]) -> dict[str, Any]:
    metadata = batch.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_old(batch: dict[str, Any]) -> bool:
    made = batch.get("created_at")
    return isinstance(made, int | float) and made < time.time() - KEPT_SECONDS


async def requests_of(session: Session, batch: dict[str, Any]) -> list[BatchRequest]:
    """The requests of a batch; none if its list is gone or cannot be read."""
    found = []
    for entry in await _entries(session, _metadata(batch).get(QUESTIONS)):
        name, questions = entry.get("custom_id"), entry.get("questions")
        if isinstance(name, str) and isinstance(questions, list):
            with contextlib.suppress(ValueError, TypeError):
                found.append(_request(name, questions, entry.get("paths")))
    return found


def _request(name: str, questions: list[Any], paths: object) -> BatchRequest:
    """Raises ValueError or TypeError where it cannot be one of ours."""
    if not isinstance(paths, list) or len(paths) != len(questions) or not all(map(_is_path, paths)):
        raise ValueError(f"{name} does not say where its labels stand in the reply")
    weighed = tuple((str(digest), _weight(weight)) for digest, weight in questions)
    return BatchRequest(name, weighed, tuple(map(tuple, paths)))


def _is_path(path: object) -> bool:
    return isinstance(path, list) and all(isinstance(key, str) for key in path)


def _weight(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= WEIGHT_LIMIT:
        raise ValueError(f"{value!r} is no weight")
    return value


async def results_of(session: Session, batch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Results by custom_id, in any order. Of two different ones for a request neither is used, but one is charged."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("output_file_id", "error_file_id"):
        for entry in await _entries(session, batch.get(name)):
            custom_id = entry.get("custom_id")
            if isinstance(custom_id, str):
                found[custom_id] = _agreed(found[custom_id], entry) if custom_id in found else entry
    return found


def _agreed(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    bodies = [body_of(entry) for entry in (first, other)]
    if None in bodies or bodies[0] == bodies[1]:
        return first if bodies[0] is not None else other
    usage = {key: value for key, value in (bodies[0] or {}).items() if key == "usage"}
    return {**first, "response": {"status_code": 200, "body": usage}}


def body_of(result: dict[str, Any]) -> dict[str, Any] | None:
    """The reply to a request that was answered."""
    response = result.get("response")
    body = response.get("body") if isinstance(response, dict) and response.get("status_code") == 200 else None
    return body if isinstance(body, dict) else None


Note = Callable[[Sequence[BatchRequest], str | None], Awaitable[None]]


async def create_batch(
    session: Session, groups: Sequence[list[Bill]], digest: Callable[[Question], str], note: Note
) -> AsyncIterator[tuple[str, list[BatchRequest]]]:
    """Send groups of labels, as many in a batch as a provider takes; yields each batch's id and requests."""
    encoded, requests, size = list[bytes](), list[BatchRequest](), 0
    for group in groups:
        questions = tuple((digest(bill.question), bill.weight) for bill in group)
        request = BatchRequest(digest_of(questions)[:32], questions, tuple(form_of(session, group).paths))
        body = await label_body(session, group)
        sent = {"custom_id": request.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        line = json.dumps(sent, ensure_ascii=False).encode()
        if encoded and (size + len(line) > BYTES_LIMIT or len(encoded) == REQUESTS_LIMIT):
            yield await _send(session, encoded, requests, note), requests
            encoded, requests, size = [], [], 0
        encoded.append(line)
        requests.append(request)
        size += len(line) + 1
    if encoded:
        yield await _send(session, encoded, requests, note), requests


async def _send(session: Session, encoded: Sequence[bytes], requests: Sequence[BatchRequest], note: Note) -> str:
    """Noted before it is there, so that after a kill it is either found and collected, or was never charged."""
    listed = [
        {"custom_id": request.custom_id, "questions": request.questions, "paths": request.paths} for request in requests
    ]
    await note(requests, UNSENT)
    creating = False
    try:
        listing = b"\n".join(json.dumps(entry).encode() for entry in listed)
        questions = await _upload(session, listing, "questions.jsonl")
        file = await _upload(session, b"\n".join(encoded), "requests.jsonl")
        creating = True
        reply = await _create(session, file, questions)
    except (Fault, OracleUnavailable) as error:
        if not (creating and isinstance(error, RetriesExhausted)):  # refused: there is no such batch
            await note(requests, None)
        raise
    made = _id_of(reply, session)
    await note(requests, made)
    return made


async def _create(session: Session, file: str, questions: str) -> dict[str, Any]:
    metadata = {ASKED_BY: asked_by(session), QUESTIONS: questions}

    async def find_created() -> dict[str, Any] | None:
        """A create whose reply was lost may have worked: sent once more, it would be paid for twice."""
        async for batch in batches_of(session):
            if _metadata(batch).get(QUESTIONS) == questions:
                return batch
        return None

    batches = session.client.sdk.batches.with_raw_response
    create = partial(batches.create, completion_window="24h", endpoint=ENDPOINT, input_file_id=file, metadata=metadata)
    return await session.client.fetch(create, find_created)


async def _upload(session: Session, content: bytes, name: str) -> str:
    files = session.client.sdk.files.with_raw_response
    send = partial(files.create, file=(name, content), purpose="batch", timeout=UPLOAD_SECONDS)
    return _id_of(await session.client.fetch(send), session)


def _id_of(made: dict[str, Any], session: Session) -> str:
    if not _is_name(made.get("id")):
        raise OracleUnavailable(
            f"{session.config.host} takes a batch but does not say its id: ask without provider_batch"
        )
    return str(made["id"])


async def _entries(session: Session, file: object) -> list[dict[str, Any]]:
    """The JSON objects of a JSONL file. Lines that are none are skipped: what they answered counts as missing."""
    import openai

    from twothirds.models.openai.errors import Unsupported, is_shallow

    if not isinstance(file, str) or not _is_name(file):
        return []
    try:
        content = await session.client.retried(lambda: session.client.sdk.files.content(file, timeout=UPLOAD_SECONDS))
    except (Unsupported, openai.NotFoundError):
        return []
    entries = []
    for line in redacted(content.content.decode("utf-8", "replace"), session.config.secrets).split("\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and is_shallow(entry):
            entries.append(entry)
    return entries


CLOCKS_DIFFER = 60.0  # seconds at most between the provider's clock and ours
RUNNING = ("validating", "in_progress", "finalizing", "cancelling")
NOTE_SECONDS = 200.0  # a lease lasts for several of these


class BatchDispatch(Dispatch):
    """Sends comparisons one by one, labels in batches of `width`. `note` records which batch holds which labels."""

    def __init__(self, session: Session, background: Background, width: int, leaving: Leaving, note: NoteBatch) -> None:
        super().__init__(session, background, width, leaving)
        self._note = note
        self._group_of: dict[Label, int] = {}  # labels whose groups were made before

    def _add_group(self, group: Sequence[Question]) -> None:
        number = len(self._group_of)
        self._group_of |= {label: number for label in group if isinstance(label, Label)}
        self._add(group)

    def _ready_labels(self) -> list[Sequence[Question]]:
        full = len(self._labels) >= self._width
        if not (full or self._exhausted or not self._in_flight):
            return []
        labels = [label for group in self._labels.release(partial=True) for label in group]
        return [labels] if labels else []

    async def _deliver(self, group: Sequence[Question], delivery: Delivery) -> None:
        if not isinstance(group[0], Label):
            await ask_group(self._session, group, delivery)
            return
        asked: Counter[Question] = Counter(group)

        def emit_each(answer: Answer) -> None:
            delivery.emit(answer)
            for _ in range(asked[answer.question] - 1):
                delivery.emit(replace(answer, cost=0, usage=Usage()))

        labels = [question for question in asked if isinstance(question, Label)]
        try:
            single = Delivery(emit_each, delivery.leaving, delivery.trace)
            await _Collection(self._session, self._groups(labels), single, self._note).collect()
        except Fault as fault:
            raise OracleUnavailable(f"{self._session.config.host} does not take the batch: {fault}") from None

    def _groups(self, labels: Sequence[Label]) -> list[list[Label]]:
        """Which labels share a request of the batch."""
        made: dict[int, list[Label]] = {}
        for label in labels:
            if label in self._group_of:
                made.setdefault(self._group_of[label], []).append(label)
        others = [label for label in labels if label not in self._group_of]
        return [*made.values(), *planned(self._session.bounds.label_groups(), others, more=False)]


@dataclass
class _Sent:
    """A batch at the provider, and those of its requests that hold questions of ours."""

    id: str
    requests: list[BatchRequest] = field(default_factory=list)


def short_digest(question: Question) -> str:
    return digest_of(question.content)[:16]


class _Collection:
    """Labels until each has its answer. An expired request goes into a new batch; one that was rejected, or whose reply
    is unreadable, is sent again at once."""

    def __init__(
        self, session: Session, groups: Sequence[Sequence[Label]], delivery: Delivery, note: NoteBatch
    ) -> None:
        labels = [label for group in groups for label in group]
        self._session = session
        self._groups = groups
        self._delivery = delivery
        self._note = note
        self._open = {short_digest(bill.question): bill for bill in session.bills(labels)}
        self._failed: set[tuple[str, str]] = set()  # batch and question
        self._deadline = time.monotonic() + session.config.batch_wait

    async def collect(self) -> None:
        for _ in range(self._session.config.attempts):
            sent = await self._found()
            known = {digest for batch in sent for request in batch.requests for digest, _ in request.questions}
            sent += await self._submitted([digest for digest in self._open if digest not in known], found=bool(sent))
            pending = [unfinished for batch in sent if (unfinished := await self._take(batch))]
            if pending:
                raise AnswersPending("; ".join(pending) + ": run the same command again to collect it")
            if not self._open:
                return
        for bill in self._open.values():
            note = f"not reached in {self._session.config.attempts} batches"
            self._delivery.emit(bill.answer(Verdict.UNREADABLE, self._session.by, note=note))

    async def _found(self) -> list[_Sent]:
        """Batches that were sent before, each question with the newest that holds it."""
        looking, found = set(self._open), list[_Sent]()
        async for batch in batches_of(self._session):
            if not looking:
                break
            sent = _Sent(batch["id"])
            for request in await requests_of(self._session, batch):
                ours = {digest for digest, _ in request.questions if (sent.id, digest) not in self._failed}
                ours -= self._too_old(batch)
                if ours & looking:
                    looking -= ours
                    sent.requests.append(request)
            if sent.requests:
                await self._note_requests(sent.requests, sent.id)
                found.append(sent)
        return found

    def _too_old(self, batch: dict[str, Any]) -> set[str]:
        """The questions that are asked again, where this batch was made before."""
        made, anew = batch.get("created_at"), self._session.anew
        if not anew or not isinstance(made, int | float):
            return set()
        wanted = ((digest, anew.get(bill.question)) for digest, bill in self._open.items())
        return {digest for digest, since in wanted if since is not None and made < since - CLOCKS_DIFFER}

    async def _submitted(self, digests: Sequence[str], *, found: bool) -> list[_Sent]:
        """In new batches. Raises BudgetExhausted, unless some are `found`: those are collected whatever the budget."""
        wanted, bounds = set(digests), self._session.bounds
        groups = [part for group in self._groups for part in self._requests_of(group, wanted)]
        bills = [[self._open[short_digest(label)] for label in group] for group in groups]
        most = [
            pair for of, group in zip(bills, groups, strict=True) for pair in zip(of, bounds.split(group), strict=True)
        ]
        try:
            if most:
                stop_if(self._session.overcharges)
            await tell(self._delivery, most)
        except BudgetExhausted:
            if not found:
                raise
            return []
        made = create_batch(self._session, bills, short_digest, self._note_requests)
        return [_Sent(name, requests) async for name, requests in made]

    def _requests_of(self, group: Sequence[Label], wanted: Collection[str]) -> list[list[Label]]:
        """Those of a group that are to be sent, in parts that one request can carry each."""
        labels = [label for label in group if short_digest(label) in wanted]
        return [arranged([labels[at] for at in part]) for part in rectangles(labels)]

    async def _note_requests(self, requests: Sequence[BatchRequest], batch: str | None) -> None:
        """Which batch holds the open questions of these requests."""
        digests = [digest for request in requests for digest, _ in request.questions]
        await self._note_bills([self._open[digest] for digest in digests if digest in self._open], batch)

    async def _note_bills(self, bills: Iterable[Bill], batch: str | None = None) -> None:
        if questions := [bill.question for bill in bills]:
            await asyncio.to_thread(self._note, questions, batch)

    async def _ask_now(self, bills: list[Bill], asks: int) -> None:
        """By requests of their own: the batch is charged once, whoever collects it, but these are charged beside it.
        What the budget does not cover stays unanswered."""
        await tell_spent(self._delivery, bills)
        await self._note_bills(bills)
        with suppress(BudgetExhausted):
            await ask_label_bills(self._session, bills, asks, self._delivery)

    async def _take(self, sent: _Sent) -> str:
        """Emit the answers of a finished batch; of a running one return how far it is."""
        noted, client = time.monotonic(), self._session.client
        look = partial(client.sdk.batches.with_raw_response.retrieve, sent.id)
        while (batch := await client.fetch(look)).get("status") in RUNNING:
            if time.monotonic() > noted + NOTE_SECONDS:
                await self._note_requests(sent.requests, sent.id)
                noted = time.monotonic()
            if time.monotonic() + self._session.config.batch_poll > self._deadline:
                done, total = _counted(batch, "completed", 0), _counted(batch, "total", len(sent.requests))
                progress = f"{done} of {total} requests done"
                return f"batch {sent.id} at {self._session.config.host} is still running, {progress}"
            await asyncio.sleep(self._session.config.batch_poll)
        if batch.get("status") == "failed":
            await self._note_requests(sent.requests, None)
            host, reason = self._session.config.host, _reason(batch, self._session.config)
            raise OracleUnavailable(f"{host} rejected batch {sent.id} ({reason}): ask without provider_batch")
        results = await results_of(self._session, batch)
        lost = batch.get("status") == "completed"  # a request without a result may have been charged
        await all_of([self._read(sent, request, results.get(request.custom_id, {}), lost) for request in sent.requests])
        await self._note_requests(sent.requests, None)  # what it has not answered it has not charged
        return ""

    async def _read(self, sent: _Sent, request: BatchRequest, result: dict[str, Any], lost: bool) -> None:
        ours = {
            place: self._open[digest] for place, (digest, _) in enumerate(request.questions) if digest in self._open
        }
        response = result.get("response")
        status = response.get("status_code") if isinstance(response, dict) else None
        if (body := body_of(result)) is not None:
            self._close(request, ours)
            await self._read_labels(request, ours, Reply.of("", body))
        elif isinstance(status, int) and 400 <= status < 500 and status not in (408, 429):
            self._close(request, ours)
            await self._ask_now(list(ours.values()), self._session.config.asks)
        elif lost and not result:
            self._close(request, ours)
            self._book(request, ours, Reply.of("", None))
            await self._ask_now(list(ours.values()), self._session.config.asks - 1)
        else:
            self._failed |= {(sent.id, digest) for digest, _ in request.questions}

    def _close(self, request: BatchRequest, ours: Iterable[int]) -> None:
        for place in ours:
            del self._open[request.questions[place][0]]

    async def _read_labels(self, request: BatchRequest, ours: dict[int, Bill], reply: Reply) -> None:
        session, message = self._session, reply.message
        self._book(request, ours, reply)
        complete = not message.cut
        values = {} if message.refused else parse_labels(message.whole, request.paths, complete=complete)
        chances = label_chances(message.text, request.paths, message.tokens)
        rest = []
        for place, bill in ours.items():
            if place in values:
                answer = label_answer(session, bill, values[place], message.text, chances.get(place))
                self._delivery.emit(answer)
            else:
                rest.append(bill)
        if rest and message.refused and len(request.questions) == 1:
            self._delivery.emit(rest[0].answer(Verdict.REFUSED, session.by, raw=message.text, note=message.note))
        elif rest and rest[0].overcharge:
            for bill in rest:
                note = "the reply does not answer this item"
                self._delivery.emit(bill.answer(Verdict.UNREADABLE, session.by, raw=message.text, note=note))
        elif rest:
            await self._ask_now(rest, session.config.asks - 1)

    def _book(self, request: BatchRequest, ours: dict[int, Bill], reply: Reply) -> None:
        """Split the cost over all questions of the request, also those that an earlier run has answered and booked."""
        first = next(iter(ours.values()))
        bills = [ours.get(place) or Bill(first.question, weight) for place, (_, weight) in enumerate(request.questions)]
        session, most = self._session, self._most([bill.question for bill in ours.values()])
        bounds = session.bounds
        allowed = bounds.most(bounds.chat, most, batch=True)
        cost = allowed if reply.tokens is None else settled(bounds.chat, reply.tokens, batch=True)
        charge(bills, reply.tokens or most, cost)
        if cost > allowed and len(ours) == len(bills):
            known = bound(bounds.chat, most, batch=True)
            by = f"{session.by} at {session.config.host}"
            session.note_overcharge(bills, Overcharge(cost, known, by))

    def _most(self, questions: Sequence[Question]) -> Tokens:
        """At most what a request takes, by those of its labels that are open."""
        labels = [question for question in questions if isinstance(question, Label)]
        requests = ([labels[at] for at in part] for part in rectangles(labels))
        return sum(map(self._session.bounds.request, requests), Tokens())


def _counted(batch: dict[str, Any], name: str, otherwise: int) -> int:
    counts = batch.get("request_counts")
    count = counts.get(name) if isinstance(counts, dict) else None
    return count if isinstance(count, int) and 0 <= count <= REQUESTS_LIMIT else otherwise


def _reason(batch: dict[str, Any], config: OpenAIConfig) -> str:
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else {}
    return one_line(str(first.get("message") if isinstance(first, dict) else first) or "no reason given", config)
