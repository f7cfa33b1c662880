"""The files of a batch: its requests, the list of their questions, and its results."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from models.openai.chat import form_of, label_body
from models.openai.client import RetriesExhausted
from models.openai.errors import Fault
from models.openai.session import Bill, Session
from models.oracle import OracleUnavailable, Question, digest_of
from models.prompting import label_paths
from sources import redacted

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
    columns: int  # as in LabelForm

    @property
    def paths(self) -> list[tuple[str, ...]]:
        return label_paths(len(self.questions), self.columns)


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
                found.append(_request(name, questions, entry.get("columns")))
    return found


def _request(name: str, questions: list[Any], columns: object) -> BatchRequest:
    """Raises ValueError or TypeError where it cannot be one of ours."""
    if not isinstance(columns, int) or not 1 <= columns <= len(questions):
        raise ValueError(f"{columns!r} is no number of columns")
    request = BatchRequest(name, tuple((str(digest), _weight(weight)) for digest, weight in questions), columns)
    label_paths(len(questions), columns)
    return request


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
        request = BatchRequest(digest_of(questions)[:32], questions, form_of(session, group).columns)
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
    listed = [_listed(request) for request in requests]
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


def _listed(request: BatchRequest) -> dict[str, Any]:
    return {"custom_id": request.custom_id, "questions": request.questions, "columns": request.columns}


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

    from models.openai.errors import Unsupported, is_shallow

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
