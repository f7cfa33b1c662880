"""Labels by a provider's Batch API: half the price, within a day. Requests are submitted, waited for and collected.

A batch is known to the provider only: its metadata name the oracle and a file that lists the questions of each request.
A later run, after a kill or on another machine, finds and collects the batch by these."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import inf
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, StringConstraints, ValidationError, WrapValidator

from twothirds.models.openai.account import Account, Attempt, Bill, Sending, Server, Spent
from twothirds.models.openai.chat import all_of, ask_labels, chat_body, conclude, label_parts, read_labels, wording
from twothirds.models.openai.client import RetriesExhausted, ServerReply
from twothirds.models.openai.errors import Fault, Unsupported, is_shallow, one_line
from twothirds.models.openai.tokens import Form
from twothirds.models.oracle import (
    AnswersPending,
    BudgetExhausted,
    ClaimLost,
    OracleUnavailable,
    Question,
    Verdict,
    digest_of,
)
from twothirds.models.prices import Tokens
from twothirds.sources import redacted

ENDPOINT: Final = "/v1/chat/completions"
ASKED_BY = "twothirds"  # metadata: the digest of the oracle's identity
QUESTIONS = "twothirds_questions"  # metadata: the file that lists the questions
REQUESTS_LIMIT = 50_000
BYTES_LIMIT = 150_000_000
UPLOAD_SECONDS = 900.0
PAGES_LIMIT = 1_000  # of the list of batches
KEPT_SECONDS = 30 * 86_400  # results are gone after that
CLOCKS_DIFFER = 60.0  # seconds at most between the provider's clock and ours
RUNNING = ("validating", "in_progress", "finalizing", "cancelling")
NOTE_SECONDS = 200.0  # a lease lasts for several of these
UNSENT = "not sent yet"  # noted instead of a batch's id until it has one


# --- what the provider keeps: of any shape, until it is read here


def _else(default: Any) -> WrapValidator:
    """The default for a value of another type."""

    def read(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except (ValidationError, RecursionError):
            return default

    return WrapValidator(read)


Name = Annotated[str, StringConstraints(pattern=r"^[\w:@+=-]+([./][\w:@+=-]+)*$", max_length=500)]  # in an address
File = Annotated[Name | None, _else(None)]


class Line(BaseModel):
    """One request of a batch: the digests of its questions in the order they were numbered."""

    custom_id: str
    questions: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]  # as in Form


class Counts(BaseModel):
    completed: Annotated[int, _else(0)] = 0
    total: Annotated[int, _else(0)] = 0


class Listed(BaseModel):
    """A batch as the provider shows it."""

    id: Name
    status: Annotated[str, _else("")] = ""
    created_at: Annotated[float, _else(inf)] = inf
    metadata: Annotated[dict[str, Any], _else({})] = {}
    output_file_id: File = None
    error_file_id: File = None
    request_counts: Annotated[Counts, _else(Counts())] = Counts()
    errors: Any = None


class Response(BaseModel):
    status_code: Annotated[int, _else(0)] = 0
    body: dict[str, Any]


class Result(BaseModel):
    """What has become of a request."""

    custom_id: str
    response: Annotated[Response | None, _else(None)] = None

    @property
    def body(self) -> dict[str, Any] | None:
        """The reply, if it was answered."""
        return self.response.body if self.response is not None and self.response.status_code == 200 else None

    def agreed(self, other: Result | None) -> Result:
        """Of two different replies to a request neither is used, but one is charged."""
        if other is None or other.body is None or other.body == self.body:
            return self
        if self.body is None or self.response is None:
            return other
        usage = {key: value for key, value in self.body.items() if key == "usage"}
        return self.model_copy(update={"response": self.response.model_copy(update={"body": usage})})


Entry = TypeVar("Entry", Line, Result)


async def batches_of(server: Server) -> AsyncIterator[Listed]:
    """Our batches at the provider, newest first, without those that failed: of one that was cancelled some requests may
    have been answered, and charged."""
    from openai import omit

    after: str | None = None
    for _ in range(PAGES_LIMIT):
        send = partial(server.client.sdk.batches.with_raw_response.list, limit=100, after=after or omit)
        page = await server.client.fetch(send)
        listed = page.get("data")
        batches = [batch for entry in listed if (batch := _listed(entry))] if isinstance(listed, list) else []
        for batch in batches:
            if batch.metadata.get(ASKED_BY) == server.oracle and batch.status != "failed":
                yield batch
        is_last = not batches or not page.get("has_more") or batches[-1].id == after
        if is_last or batches[-1].created_at < time.time() - KEPT_SECONDS:
            return
        after = batches[-1].id


def _listed(shown: object) -> Listed | None:
    try:
        return Listed.model_validate(shown)
    except (ValidationError, RecursionError):
        return None


async def lines_of(server: Server, file: object) -> list[Line]:
    """The requests of a batch; none if its list is gone or cannot be read."""
    return [line for line in await _entries(server, file, Line) if len(line.paths) == len(line.questions)]


async def results_of(server: Server, batch: Listed) -> dict[str, Result]:
    """Results by custom_id, in any order."""
    found: dict[str, Result] = {}
    for file in (batch.output_file_id, batch.error_file_id):
        for result in await _entries(server, file, Result):
            found[result.custom_id] = result.agreed(found.get(result.custom_id))
    return found


async def _entries(server: Server, file: object, kind: type[Entry]) -> list[Entry]:
    """The lines of a JSONL file. What cannot be read is skipped: what it answered counts as missing."""
    import openai

    if not isinstance(file, str) or _listed({"id": file}) is None:
        return []
    try:
        content = await server.client.retried(lambda: server.client.sdk.files.content(file, timeout=UPLOAD_SECONDS))
    except (Unsupported, openai.NotFoundError):
        return []
    entries = []
    for line in redacted(content.content.decode("utf-8", "replace"), server.config.secrets).split("\n"):
        try:
            data = json.loads(line)
            if is_shallow(data):
                entries.append(kind.model_validate(data))
        except (ValueError, RecursionError):
            continue
    return entries


# --- from submitting to the last answer


@dataclass(slots=True, eq=False)
class Part:
    """Labels of a request in a line of a batch, by their places there."""

    line: Line
    account: Account
    bills: dict[int, Bill]
    attempt: Attempt


@dataclass(slots=True)
class Batch:
    id: str = ""
    parts: list[Part] = field(default_factory=list)

    @property
    def accounts(self) -> set[Account]:
        return {part.account for part in self.parts}


def short_digest(question: Question) -> str:
    return digest_of(question.content)[:16]


async def collect(server: Server, sending: Sending, accounts: Sequence[Account]) -> None:
    """Ask labels until each has its answer. An expired request goes into a new batch; one that was rejected, or whose
    reply is unreadable, is sent again at once. Raises AnswersPending where a batch takes too long."""
    try:
        await _Collection(server, sending, accounts).collect()
    except Fault as fault:
        raise OracleUnavailable(f"{server.config.host} does not take the batch: {fault}") from None


class _Collection:
    def __init__(self, server: Server, sending: Sending, accounts: Sequence[Account]) -> None:
        self._server, self._config, self._client = server, server.config, server.client
        self._meter, self._accounts = sending.meter, accounts
        self._open = {short_digest(bill.question): (account, bill) for account in accounts for bill in account.bills}
        self._failed: set[tuple[str, str]] = set()  # batch and line
        self._deadline = time.monotonic() + server.config.batch_wait

    async def collect(self) -> None:
        for _ in range(self._config.attempts):
            batches = await self._found()
            held = {bill for batch in batches for part in batch.parts for bill in part.bills.values()}
            batches += await self._submitted([pair for pair in self._open.values() if pair[1] not in held])
            pending = [progress for batch in batches if (progress := await self._take(batch))]
            if pending:
                raise AnswersPending("; ".join(pending) + ": run the same command again to collect it")
            if not self._open:
                return
        for account, bill in self._open.values():
            account.answer(bill, Verdict.UNREADABLE, note=f"not reached in {self._config.attempts} batches")
        self._close(self._accounts, list(chain.from_iterable(account.bills for account in self._accounts)))

    def _close(self, accounts: Iterable[Account], bills: Iterable[Bill]) -> None:
        """Nothing more is asked about these labels."""
        for bill in bills:
            self._open.pop(short_digest(bill.question), None)
        still = {account for account, _ in self._open.values()}
        for account in accounts:
            if account not in still:
                account.finish()

    async def _note(self, accounts: Collection[Account], batch: str | None) -> None:
        """Have it noted which batch holds these requests."""

        def note() -> None:
            for account in accounts:
                self._meter.in_batch(account.request, batch)

        await asyncio.to_thread(note)
        for account in accounts:
            account.in_batch = batch is not None

    # --- submit

    async def _found(self) -> list[Batch]:
        """Batches that were sent before, each question with the newest that holds it."""
        looking, found = dict(self._open), list[Batch]()
        async for listed in batches_of(self._server):
            if not looking:
                break
            batch = Batch(listed.id)
            for line in await lines_of(self._server, listed.metadata.get(QUESTIONS)):
                if (batch.id, line.custom_id) in self._failed:
                    continue
                ours: dict[Account, dict[int, Bill]] = {}
                for place, digest in enumerate(line.questions):
                    account, bill = looking.get(digest, (None, None))
                    if account and bill and listed.created_at >= account.request.since - CLOCKS_DIFFER:
                        ours.setdefault(account, {})[place] = looking.pop(digest)[1]
                for account, bills in ours.items():
                    forms = [form for _, form in label_parts(account, list(bills.values()), 0)]
                    batch.parts += await self._part(line, account, bills, forms, found=True)
            if batch.parts:
                await self._note(batch.accounts, batch.id)
                found.append(batch)
        return found

    async def _part(
        self, line: Line, account: Account, bills: dict[int, Bill], forms: Iterable[Form], *, found: bool = False
    ) -> list[Part]:
        """These labels in this line, if it may be sent, or collected."""
        most = sum(map(self._server.pricing.most, forms), Tokens())
        attempt = account.attempt("chat", most, batch=True)
        try:
            if found and account.request.adopted:
                account.adopt(attempt)
            else:
                await account.leave(attempt)
        except Spent:
            account.give_up(bills.values())
        except (BudgetExhausted, ClaimLost):
            pass
        else:
            return [Part(line, account, bills, attempt)]
        self._close([account], bills.values())
        return []

    async def _submitted(self, labels: Iterable[tuple[Account, Bill]]) -> list[Batch]:
        """In new batches, as many in each as a provider takes."""
        of: dict[Account, list[Bill]] = {}
        for account, bill in labels:
            of.setdefault(account, []).append(bill)
        batches, batch, encoded, size = list[Batch](), Batch(), list[bytes](), 0
        for account, bills in of.items():
            for part, form in label_parts(account, bills, 0):
                questions = [bill.question for bill in part]
                digests = tuple(map(short_digest, questions))
                line = Line(custom_id=digest_of(digests)[:32], questions=digests, paths=tuple(form.paths))
                if not (parts := await self._part(line, account, dict(enumerate(part)), [form])):
                    continue
                body = await chat_body(self._server, form, questions, wording(account, 0))
                sent = {"custom_id": line.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
                data = json.dumps(sent, ensure_ascii=False).encode()
                if encoded and (size + len(data) > BYTES_LIMIT or len(encoded) == REQUESTS_LIMIT):
                    batches.append(await self._sent(batch, encoded))
                    batch, encoded, size = Batch(), [], 0
                batch.parts += parts
                encoded.append(data)
                size += len(data) + 1
        return [*batches, await self._sent(batch, encoded)] if encoded else batches

    async def _sent(self, batch: Batch, encoded: Sequence[bytes]) -> Batch:
        """Noted before it is there, so that after a kill it is either found and collected, or was never charged."""
        await self._note(batch.accounts, UNSENT)
        creating = False
        try:
            listing = "\n".join(part.line.model_dump_json() for part in batch.parts).encode()
            questions = await self._upload(listing, "questions.jsonl")
            file = await self._upload(b"\n".join(encoded), "requests.jsonl")
            creating = True
            batch.id = self._id_of(await self._create(file, questions))
        except (Fault, OracleUnavailable) as error:
            if not (creating and isinstance(error, RetriesExhausted)):  # refused: there is no such batch
                await self._end(batch)
            raise
        await self._note(batch.accounts, batch.id)
        return batch

    async def _end(self, batch: Batch) -> None:
        """It was not charged."""
        await self._note(batch.accounts, None)
        for part in batch.parts:
            part.account.end(part.attempt)

    async def _create(self, file: str, questions: str) -> dict[str, Any]:
        metadata = {ASKED_BY: self._server.oracle, QUESTIONS: questions}

        async def find_created() -> dict[str, Any] | None:
            """A create whose reply was lost may have worked: sent once more, it would be paid for twice."""
            async for batch in batches_of(self._server):
                if batch.metadata.get(QUESTIONS) == questions:
                    return {"id": batch.id}
            return None

        create = self._client.sdk.batches.with_raw_response.create
        terms: dict[str, Any] = {"completion_window": "24h", "endpoint": ENDPOINT}
        return await self._client.fetch(
            partial(create, **terms, input_file_id=file, metadata=metadata), find_done=find_created
        )

    async def _upload(self, content: bytes, name: str) -> str:
        files = self._client.sdk.files.with_raw_response
        send = partial(files.create, file=(name, content), purpose="batch", timeout=UPLOAD_SECONDS)
        return self._id_of(await self._client.fetch(send))

    def _id_of(self, made: dict[str, Any]) -> str:
        if (listed := _listed(made)) is None:
            host = self._config.host
            raise OracleUnavailable(f"{host} takes a batch but does not say its id: ask without provider_batch")
        return listed.id

    # --- collect

    async def _take(self, batch: Batch) -> str:
        """Read a finished batch; of a running one return how far it is."""
        noted, host = time.monotonic(), self._config.host
        look = partial(self._client.sdk.batches.with_raw_response.retrieve, batch.id)
        while (shown := Listed.model_validate(await self._client.fetch(look) | {"id": batch.id})).status in RUNNING:
            if time.monotonic() > noted + NOTE_SECONDS:
                await self._note(batch.accounts, batch.id)
                noted = time.monotonic()
            if time.monotonic() + self._config.batch_poll > self._deadline:
                done, total = shown.request_counts.completed, shown.request_counts.total or len(batch.parts)
                return f"batch {batch.id} at {host} is still running, {done} of {total} requests done"
            await asyncio.sleep(self._config.batch_poll)
        if shown.status == "failed":
            await self._end(batch)
            reason = one_line(json.dumps(shown.errors), self._config)
            raise OracleUnavailable(f"{host} rejected batch {batch.id} ({reason}): ask without provider_batch")
        results = await results_of(self._server, shown)
        is_complete = shown.status == "completed"  # a request without a result may have been charged
        await all_of([self._read(batch, part, results.get(part.line.custom_id), is_complete) for part in batch.parts])
        return ""

    async def _read(self, batch: Batch, part: Part, result: Result | None, is_complete: bool) -> None:
        account, bills = part.account, part.bills
        body, status = (result.body, result.response.status_code if result.response else 0) if result else (None, 0)
        is_rejected, is_lost = 400 <= status < 500 and status not in (408, 429), is_complete and result is None
        account.end(part.attempt, in_doubt=is_lost)
        reply = ServerReply.of("", body)
        reading = read_labels(self._server, reply, part.line.paths) if body is not None else None
        if reading is None or bills.keys() - reading.labels.keys():
            await self._note([account], None)
        account.in_batch = False
        labels = list(bills.values())
        try:
            if reading is not None:
                # A line that an earlier run has booked whole is charged to it whole.
                whole = account.request.adopted
                places, count = (range(len(bills)), len(bills)) if whole else (list(bills), len(part.line.questions))
                account.charge(part.attempt, reply.tokens, labels, places, count)
                if reading.counts and reading.refused:  # alone, it is not asked again at the full price
                    labels[0].refusals = self._config.refusals
                await conclude(account, bills, reading, 0)
            elif is_lost and self._config.asks == 1:
                account.give_up(labels)
            elif is_lost or is_rejected:
                await ask_labels(account, labels, int(is_lost))
            else:
                self._failed.add((batch.id, part.line.custom_id))  # it goes into another batch
                return
        except (BudgetExhausted, ClaimLost):
            pass
        self._close([account], labels)
