"""Labels by a provider's Batch API: half the price, within a day. Requests are submitted, waited for and collected.

A batch is known to the provider only: its metadata name the oracle and a file that lists the questions of each request.
A later run, after a kill or on another machine, finds and collects the batch by these."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import inf
from typing import Any, Final, TypeGuard

from twothirds.models.openai.account import Account, Attempt, Bill, Sending, Server, Spent
from twothirds.models.openai.chat import all_of, ask_labels, chat_body, conclude, label_parts, read_labels, wording
from twothirds.models.openai.client import RetriesExhausted, ServerReply
from twothirds.models.openai.config import OpenAIConfig
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
_NAME = re.compile(r"[\w./:@+=-]{1,500}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Line:
    """One request of a batch: the digests of its questions in the order they were numbered."""

    custom_id: str
    questions: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]  # as in Form


def line_of(entry: dict[str, Any]) -> Line | None:
    """None where it is not one of ours."""
    name, questions, paths = (entry.get(key) for key in ("custom_id", "questions", "paths"))
    if not isinstance(name, str) or not _is_texts(questions) or not isinstance(paths, list):
        return None
    if len(paths) != len(questions) or not all(map(_is_texts, paths)):
        return None
    return Line(name, tuple(questions), tuple(map(tuple, paths)))


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def short_digest(question: Question) -> str:
    return digest_of(question.content)[:16]


async def batches_of(server: Server) -> AsyncIterator[dict[str, Any]]:
    """Our batches at the provider, newest first, without those that failed: of one that was cancelled some requests may
    have been answered, and charged."""
    from openai import omit

    after: str | None = None
    for _ in range(PAGES_LIMIT):
        send = partial(server.client.sdk.batches.with_raw_response.list, limit=100, after=after or omit)
        page = await server.client.fetch(send)
        listed = page.get("data")
        batches = [batch for batch in listed if isinstance(batch, dict)] if isinstance(listed, list) else []
        for batch in batches:
            ours = _metadata(batch).get(ASKED_BY) == server.oracle
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


async def lines_of(server: Server, batch: dict[str, Any]) -> list[Line]:
    """The requests of a batch; none if its list is gone or cannot be read."""
    return [line for entry in await _entries(server, _metadata(batch).get(QUESTIONS)) if (line := line_of(entry))]


async def results_of(server: Server, batch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Results by custom_id, in any order. Of two different ones for a request neither is used, but one is charged."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("output_file_id", "error_file_id"):
        for entry in await _entries(server, batch.get(name)):
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


async def _entries(server: Server, file: object) -> list[dict[str, Any]]:
    """The JSON objects of a JSONL file. Lines that are none are skipped: what they answered counts as missing."""
    import openai

    if not isinstance(file, str) or not _is_name(file):
        return []
    try:
        content = await server.client.retried(lambda: server.client.sdk.files.content(file, timeout=UPLOAD_SECONDS))
    except (Unsupported, openai.NotFoundError):
        return []
    entries = []
    for line in redacted(content.content.decode("utf-8", "replace"), server.config.secrets).split("\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and is_shallow(entry):
            entries.append(entry)
    return entries


def _counted(batch: dict[str, Any], name: str, otherwise: int) -> int:
    counts = batch.get("request_counts")
    count = counts.get(name) if isinstance(counts, dict) else None
    return count if isinstance(count, int) and 0 <= count <= REQUESTS_LIMIT else otherwise


def _reason(batch: dict[str, Any], config: OpenAIConfig) -> str:
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else {}
    return one_line(str(first.get("message") if isinstance(first, dict) else first) or "no reason given", config)


Ours = dict[Account, dict[int, Bill]]  # open labels of a line by their places in it


@dataclass(slots=True)
class _Batch:
    """A batch at the provider, and those of its requests that hold questions of ours."""

    id: str
    lines: list[tuple[Line, Ours]] = field(default_factory=list)

    @property
    def accounts(self) -> set[Account]:
        return {account for _, ours in self.lines for account in ours}


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
        self._under_way: dict[tuple[Account, str], Attempt] = {}  # by the name of a line
        self._failed: set[tuple[str, str]] = set()  # batch and line
        self._deadline = time.monotonic() + server.config.batch_wait

    async def collect(self) -> None:
        for _ in range(self._config.attempts):
            batches = await self._found()
            held = {
                bill for batch in batches for _, ours in batch.lines for of in ours.values() for bill in of.values()
            }
            batches += await self._submitted([pair for pair in self._open.values() if pair[1] not in held])
            pending = [progress for batch in batches if (progress := await self._take(batch))]
            if pending:
                raise AnswersPending("; ".join(pending) + ": run the same command again to collect it")
            if not self._open:
                return
        for account, bill in self._open.values():
            account.answer(bill, Verdict.UNREADABLE, note=f"not reached in {self._config.attempts} batches")
        self._close(self._accounts)

    def _close(self, accounts: Iterable[Account], bills: Iterable[Bill] | None = None) -> None:
        """These labels, or all of these requests, are no longer open."""
        gone = [account.bills for account in accounts] if bills is None else [bills]
        for bill in chain.from_iterable(gone):
            self._open.pop(short_digest(bill.question), None)
        still = {account for account, _ in self._open.values()}
        for account in accounts:
            if account not in still:
                account.finish()

    async def _note(self, accounts: Iterable[Account], batch: str | None) -> None:
        """Have it noted which batch holds these requests."""
        noted = list(accounts)

        def note() -> None:
            for account in noted:
                self._meter.in_batch(account.request, batch)

        await asyncio.to_thread(note)
        for account in noted:
            account.in_batch = batch is not None

    # --- submit

    async def _found(self) -> list[_Batch]:
        """Batches that were sent before, each question with the newest that holds it."""
        looking, found = set(self._open), list[_Batch]()
        async for listed in batches_of(self._server):
            if not looking:
                break
            batch, made = _Batch(listed["id"]), listed.get("created_at")
            made_at = made if isinstance(made, int | float) else inf
            for line in await lines_of(self._server, listed):
                if looking.isdisjoint(line.questions) or (batch.id, line.custom_id) in self._failed:
                    continue
                if ours := await self._of_ours(line, looking, made_at):
                    looking.difference_update(line.questions)
                    batch.lines.append((line, ours))
            if batch.lines:
                await self._note(batch.accounts, batch.id)
                found.append(batch)
        return found

    async def _of_ours(self, line: Line, looking: Container[str], made_at: float) -> Ours:
        """The labels that this line of an earlier run answers. It is booked, if it was not by then."""
        ours: Ours = {}
        for place, digest in enumerate(line.questions):
            if digest in looking:
                account, bill = self._open[digest]
                if made_at >= account.request.since - CLOCKS_DIFFER:
                    ours.setdefault(account, {})[place] = bill
        for account, bills in list(ours.items()):
            parts = label_parts(account, list(bills.values()), 0)
            most = sum((self._server.pricing.most(form) for _, form in parts), Tokens())
            attempt = account.attempt("chat", most, batch=True)
            if account.request.adopted:
                account.adopt(attempt)
            elif not await self._leaves(account, attempt, bills.values()):
                del ours[account]
                continue
            self._under_way[account, line.custom_id] = attempt
        return ours

    async def _leaves(self, account: Account, attempt: Attempt, bills: Collection[Bill]) -> bool:
        """Whether a line with these labels may be sent, or collected; else they get no answer."""
        try:
            await account.leave(attempt)
        except Spent:
            account.give_up(bills)
        except (BudgetExhausted, ClaimLost):
            pass
        else:
            return True
        self._close([account], bills)
        return False

    async def _submitted(self, labels: Iterable[tuple[Account, Bill]]) -> list[_Batch]:
        """In new batches, as many in each as a provider takes."""
        bills: dict[Account, list[Bill]] = {}
        for account, bill in labels:
            bills.setdefault(account, []).append(bill)
        lines = list[tuple[Line, Account, list[Bill], Form]]()
        await all_of([self._add_lines(lines, account, of) for account, of in bills.items()])
        batches, encoded, size = list[_Batch](), list[bytes](), 0
        batch = _Batch("")
        for line, account, part, form in lines:
            body = await chat_body(self._server, form, [bill.question for bill in part], wording(account, 0))
            sent = {"custom_id": line.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
            encoded_line = json.dumps(sent, ensure_ascii=False).encode()
            if encoded and (size + len(encoded_line) > BYTES_LIMIT or len(encoded) == REQUESTS_LIMIT):
                batches.append(await self._send(batch, encoded))
                batch, encoded, size = _Batch(""), [], 0
            encoded.append(encoded_line)
            batch.lines.append((line, {account: dict(enumerate(part))}))
            size += len(encoded_line) + 1
        return [*batches, await self._send(batch, encoded)] if encoded else batches

    async def _add_lines(
        self, lines: list[tuple[Line, Account, list[Bill], Form]], account: Account, bills: Sequence[Bill]
    ) -> None:
        for part, form in label_parts(account, bills, 0):
            attempt = account.attempt("chat", self._server.pricing.most(form), batch=True)
            if not await self._leaves(account, attempt, part):
                continue
            digests = tuple(short_digest(bill.question) for bill in part)
            line = Line(digest_of(digests)[:32], digests, tuple(form.paths))
            self._under_way[account, line.custom_id] = attempt
            lines.append((line, account, part, form))

    async def _send(self, batch: _Batch, encoded: Sequence[bytes]) -> _Batch:
        """Noted before it is there, so that after a kill it is either found and collected, or was never charged."""
        await self._note(batch.accounts, UNSENT)
        creating = False
        try:
            listed = (
                {"custom_id": line.custom_id, "questions": line.questions, "paths": line.paths}
                for line, _ in batch.lines
            )
            listing = b"\n".join(json.dumps(entry).encode() for entry in listed)
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

    async def _end(self, batch: _Batch) -> None:
        """What was not charged is no longer under way."""
        await self._note(batch.accounts, None)
        for line, ours in batch.lines:
            for account in ours:
                if (attempt := self._under_way.pop((account, line.custom_id), None)) is not None:
                    account.end(attempt)

    async def _create(self, file: str, questions: str) -> dict[str, Any]:
        metadata = {ASKED_BY: self._server.oracle, QUESTIONS: questions}

        async def find_created() -> dict[str, Any] | None:
            """A create whose reply was lost may have worked: sent once more, it would be paid for twice."""
            async for batch in batches_of(self._server):
                if _metadata(batch).get(QUESTIONS) == questions:
                    return batch
            return None

        create = partial(
            self._client.sdk.batches.with_raw_response.create,
            completion_window="24h",
            endpoint=ENDPOINT,
            input_file_id=file,
            metadata=metadata,
        )
        return await self._client.fetch(create, find_created)

    async def _upload(self, content: bytes, name: str) -> str:
        files = self._client.sdk.files.with_raw_response
        send = partial(files.create, file=(name, content), purpose="batch", timeout=UPLOAD_SECONDS)
        return self._id_of(await self._client.fetch(send))

    def _id_of(self, made: dict[str, Any]) -> str:
        if not _is_name(made.get("id")):
            host = self._config.host
            raise OracleUnavailable(f"{host} takes a batch but does not say its id: ask without provider_batch")
        return str(made["id"])

    # --- collect

    async def _take(self, batch: _Batch) -> str:
        """Read a finished batch; of a running one return how far it is."""
        noted, look = time.monotonic(), partial(self._client.sdk.batches.with_raw_response.retrieve, batch.id)
        while (found := await self._client.fetch(look)).get("status") in RUNNING:
            if time.monotonic() > noted + NOTE_SECONDS:
                await self._note(batch.accounts, batch.id)
                noted = time.monotonic()
            if time.monotonic() + self._config.batch_poll > self._deadline:
                done, total = _counted(found, "completed", 0), _counted(found, "total", len(batch.lines))
                return f"batch {batch.id} at {self._config.host} is still running, {done} of {total} requests done"
            await asyncio.sleep(self._config.batch_poll)
        if found.get("status") == "failed":
            await self._end(batch)
            reason = _reason(found, self._config)
            raise OracleUnavailable(
                f"{self._config.host} rejected batch {batch.id} ({reason}): ask without provider_batch"
            )
        results = await results_of(self._server, found)
        lost = found.get("status") == "completed"  # a request without a result may have been charged
        await all_of(
            [
                self._read(batch, line, account, bills, results.get(line.custom_id, {}), lost=lost)
                for line, ours in batch.lines
                for account, bills in ours.items()
            ]
        )
        return ""

    async def _read(
        self, batch: _Batch, line: Line, account: Account, bills: dict[int, Bill], result: dict[str, Any], *, lost: bool
    ) -> None:
        attempt = self._under_way.pop((account, line.custom_id))
        response = result.get("response")
        status = response.get("status_code") if isinstance(response, dict) else None
        body = body_of(result)
        is_rejected = isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
        is_lost = lost and not result
        account.end(attempt, in_doubt=is_lost)
        reading = read_labels(self._server, ServerReply.of("", body), line.paths) if body is not None else None
        if reading is None or bills.keys() - reading.labels.keys():
            await self._note([account], None)
        account.in_batch = False
        labels = list(bills.values())
        try:
            if reading is not None:
                # A line that an earlier run has booked whole is charged to it whole.
                places = range(len(bills)) if account.request.adopted else list(bills)
                count = len(bills) if account.request.adopted else len(line.questions)
                account.charge(attempt, ServerReply.of("", body).tokens, labels, places, count)
                await conclude(account, bills, reading, 0)
            elif is_lost and self._config.asks == 1:
                account.give_up(labels)
            elif is_lost or is_rejected:
                await ask_labels(account, labels, int(is_lost))
            else:
                self._failed.add((batch.id, line.custom_id))  # it goes into another batch
                return
        except (BudgetExhausted, ClaimLost):
            pass
        self._close([account], labels)
