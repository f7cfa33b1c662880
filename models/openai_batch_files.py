"""The files of a batch: its requests, the list of the questions in them, and its results."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from models.billing import Bill
from models.openai_chat import label_body
from models.openai_desk import Desk
from models.openai_errors import redacted
from models.oracle import Question, digest_of

ENDPOINT: Final = "/v1/chat/completions"
ASKED_BY = "twothirds"  # metadata: the digest of the oracle's identity
QUESTIONS = "twothirds_questions"  # metadata: the file that lists the questions
LINES_LIMIT = 50_000
BYTES_LIMIT = 150_000_000
UPLOAD_SECONDS = 900.0
KEPT_SECONDS = 30 * 86_400  # results are gone after that


@dataclass(frozen=True, slots=True)
class Line:
    """One request of a batch: the digests of its questions in the order they were numbered, and their weights."""

    custom_id: str
    questions: tuple[tuple[str, int], ...]


def asked_by(desk: Desk) -> str:
    return digest_of(desk.identity.to_json())[:32]


async def batches_of(desk: Desk) -> AsyncIterator[dict[str, Any]]:
    """Our batches at the provider, newest first, but for those of which nothing can be had."""
    from openai import omit

    after: str | None = None
    while True:
        page = await desk.wire.persist(partial(desk.wire.client.batches.list, limit=100, after=after or omit))
        for found in page.data:
            batch: dict[str, Any] = found.to_dict()
            ours = (batch.get("metadata") or {}).get(ASKED_BY) == asked_by(desk)
            if ours and batch.get("status") not in ("failed", "cancelled"):
                yield batch
        oldest = page.data[-1] if page.data else None
        if oldest is None or not page.has_next_page() or oldest.created_at < time.time() - KEPT_SECONDS:
            return
        after = oldest.id


async def lines_of(desk: Desk, batch: dict[str, Any]) -> list[Line]:
    """What a batch asks; nothing where its list is gone or is not ours to read."""
    lines = []
    for entry in await _entries(desk, (batch.get("metadata") or {}).get(QUESTIONS)):
        name, questions = entry.get("custom_id"), entry.get("questions")
        if isinstance(name, str) and isinstance(questions, list):
            lines.append(Line(name, tuple((str(digest), int(weight)) for digest, weight in questions)))
    return lines


async def results_of(desk: Desk, batch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Results by the id they bear, in whatever order they come."""
    found = {}
    for name in ("output_file_id", "error_file_id"):
        for entry in await _entries(desk, batch.get(name)):
            if isinstance(entry.get("custom_id"), str):
                found[entry["custom_id"]] = entry
    return found


async def create_batch(
    desk: Desk, groups: Sequence[list[Bill]], digest: Callable[[Question], str]
) -> AsyncIterator[tuple[str, list[Line]]]:
    """Send groups of labels, as many in a batch as a provider takes; each batch's id and lines."""
    requests, lines, size = list[bytes](), list[Line](), 0
    for group in groups:
        questions = tuple((digest(bill.question), bill.weight) for bill in group)
        line = Line(digest_of(questions)[:32], questions)
        body = await label_body(desk, group)
        request = {"custom_id": line.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        encoded = json.dumps(request, ensure_ascii=False).encode()
        if requests and (size + len(encoded) > BYTES_LIMIT or len(requests) == LINES_LIMIT):
            yield await _send(desk, requests, lines), lines
            requests, lines, size = [], [], 0
        requests.append(encoded)
        lines.append(line)
        size += len(encoded) + 1
    if requests:
        yield await _send(desk, requests, lines), lines


async def _send(desk: Desk, requests: Sequence[bytes], lines: Sequence[Line]) -> str:
    listed = [{"custom_id": line.custom_id, "questions": line.questions} for line in lines]
    questions = await _upload(desk, b"\n".join(json.dumps(entry).encode() for entry in listed), "questions.jsonl")
    metadata = {ASKED_BY: asked_by(desk), QUESTIONS: questions}
    file = await _upload(desk, b"\n".join(requests), "requests.jsonl")

    async def made_before() -> str | None:
        """A create whose reply was lost may have worked: sent once more, it would be paid for twice."""
        async for batch in batches_of(desk):
            if (batch.get("metadata") or {}).get(QUESTIONS) == questions:
                return str(batch["id"])
        return None

    async def create() -> str:
        batches = desk.wire.client.batches
        made = await batches.create(completion_window="24h", endpoint=ENDPOINT, input_file_id=file, metadata=metadata)
        return made.id

    name: str = await desk.wire.persist(create, instead=made_before)
    return name


async def _upload(desk: Desk, content: bytes, name: str) -> str:
    files = desk.wire.client.files
    made = await desk.wire.persist(
        lambda: files.create(file=(name, content), purpose="batch", timeout=UPLOAD_SECONDS),
    )
    return str(made.id)


async def _entries(desk: Desk, file: object) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines. Lines that are none are left out: what they answered counts as missing."""
    import openai

    from models.openai_errors import Unsupported

    if not isinstance(file, str):
        return []
    try:
        content = await desk.wire.persist(lambda: desk.wire.client.files.content(file, timeout=UPLOAD_SECONDS))
    except (Unsupported, openai.NotFoundError):
        return []
    entries = []
    for line in redacted(content.content.decode("utf-8", "replace"), desk.config).split("\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
