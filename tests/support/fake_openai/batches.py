"""Files and batches: uploads are kept, batches run when they are looked at, and can go wrong line by line."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any

from tests.support.fake_openai.faults import REPEATS, SPOILERS, USAGES, repeat_prompt
from tests.support.fake_openai.mind import fresh_numbers
from tests.support.fake_openai.wire import Request, Response

if TYPE_CHECKING:
    from tests.support.fake_openai.server import FakeOpenAI


@dataclass
class BatchManners:
    """How the next batches behave."""

    polls: int = 1  # looks at a batch before it is finished
    shuffled: bool = False
    expired: float = 0.0  # share of the lines that are not reached
    failing: float = 0.0  # share of the lines that end in an error
    spoiled: float = 0.0  # share of the lines whose reply is bad
    spoilers: tuple[str, ...] = ("prose",)  # how they are
    twice: bool = False  # a line comes twice, the second time with the opposite labels
    torn: bool = False  # the last line of the results is cut
    foreign: bool = False  # a line of another batch is among the results
    ends: str = "completed"
    loses_create: bool = False  # the first batch is made, but its maker is cut off before hearing of it
    seed: int = 0


@dataclass
class Batch:
    id: str
    lines: list[dict[str, Any]]
    about: dict[str, Any]
    polls: int
    manners: BatchManners
    done: dict[str, Any] = field(default_factory=dict)


class Batches:
    def __init__(self, server: FakeOpenAI) -> None:
        self._server = server
        self.manners = BatchManners()
        self.files: dict[str, bytes] = {}
        self.made: list[Batch] = []

    def answer(self, request: Request) -> Response:
        parts = request.path.removeprefix("/v1/").split("/")
        if parts[0] == "files":
            return self._file(request, parts)
        if request.method == "POST" and len(parts) == 1:
            return self._create(request.json())
        if len(parts) == 1:
            return self._list(request)
        batch = next((batch for batch in self.made if batch.id == parts[1]), None)
        if batch is None:
            return Response.of({"error": {"message": f"No such batch: {parts[1]}"}}, 404)
        return Response.of(self._look(batch))

    def finish(self, ends: str = "") -> None:
        """Run what was sent, also if nobody looks; `ends` is the status with which it is said to have ended."""
        for batch in self.made:
            if not batch.done:
                self._run(batch)
                batch.done |= {"status": ends} if ends else {}

    def _file(self, request: Request, parts: list[str]) -> Response:
        if request.method == "POST":
            head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
            form = BytesParser(policy=HTTP).parsebytes(head + request.body)
            fields = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
            content = fields["file"].get_payload(decode=True)
            assert isinstance(content, bytes)
            return Response.of(self._keep(content, "batch"))
        if parts[1] not in self.files:
            return Response.of({"error": {"message": f"No such file: {parts[1]}"}}, 404)
        if parts[-1] == "content":
            return Response(self.files[parts[1]], headers={"content-type": "application/octet-stream"})
        return Response.of(self._about_file(parts[1], "batch"))

    def _keep(self, content: bytes, purpose: str) -> dict[str, Any]:
        name = f"file-{next(fresh_numbers)}"
        self.files[name] = content
        return self._about_file(name, purpose)

    def _about_file(self, name: str, purpose: str) -> dict[str, Any]:
        size = len(self.files[name])
        about = {"id": name, "object": "file", "bytes": size, "created_at": 1, "filename": name}
        return {**about, "purpose": purpose, "status": "processed"}

    def _create(self, body: dict[str, Any]) -> Response:
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        about = {
            "object": "batch",
            "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"],
            "completion_window": body["completion_window"],
            "metadata": body.get("metadata"),
            "created_at": int(time.time()),
        }
        batch = Batch(f"batch_{next(fresh_numbers)}", lines, about, self.manners.polls, self.manners)
        self.made.append(batch)
        if self.manners.loses_create and len(self.made) == 1:
            return Response(b"", silent=True)
        return Response.of(self._shown(batch))

    def _list(self, request: Request) -> Response:
        newest = [self._shown(batch) for batch in reversed(self.made)]
        after = request.query.get("after")
        start = next((place + 1 for place, batch in enumerate(newest) if batch["id"] == after), 0)
        page = newest[start : start + int(request.query.get("limit", "20"))]
        return Response.of({"object": "list", "data": page, "has_more": start + len(page) < len(newest)})

    def _look(self, batch: Batch) -> dict[str, Any]:
        batch.polls -= 1
        if batch.polls <= 0 and not batch.done:
            self._run(batch)
        return self._shown(batch)

    def _shown(self, batch: Batch) -> dict[str, Any]:
        return {"id": batch.id, "status": "in_progress", **batch.about, **batch.done}

    def _run(self, batch: Batch) -> None:
        manners, dice = batch.manners, random.Random(f"{batch.manners.seed}:{len(self.made)}")
        good, bad = [], []
        for line in batch.lines:
            chance = dice.random()
            if chance < manners.expired:
                bad.append(_failed(line, None, "batch_expired"))
            elif chance < manners.expired + manners.failing:
                bad.append(_failed(line, {"status_code": 500, "body": {}}, "server_error"))
            else:
                spoiler = dice.choice(manners.spoilers) if dice.random() < manners.spoiled else None
                good.append(self._completed(line, spoiler))
        if manners.foreign and good:
            good.insert(0, good[0] | {"custom_id": "of-another-batch"})
        if manners.twice and good:
            good.append(_contradicted(good[0]))
        if manners.shuffled:
            dice.shuffle(good)
        batch.done = {
            "status": "expired" if manners.expired else manners.ends,
            "output_file_id": self._keep(_lines(good, torn=manners.torn), "batch_output")["id"] if good else None,
            "error_file_id": self._keep(_lines(bad), "batch_output")["id"] if bad else None,
            "request_counts": {"total": len(batch.lines), "completed": len(good), "failed": len(bad)},
        }

    def _completed(self, line: dict[str, Any], spoiler: str | None) -> dict[str, Any]:
        from tests.support.fake_openai.server import Charge

        body = self._server.complete(line["url"], line["body"])
        if spoiler == REPEATS:
            repeat_prompt(line["body"], body)
        elif spoiler is not None:
            SPOILERS[spoiler](body)
        if spoiler not in USAGES:
            self._server.book.append(Charge("batch", body["usage"]))
        response = {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}


def _failed(line: dict[str, Any], response: dict[str, Any] | None, code: str) -> dict[str, Any]:
    error = {"code": code, "message": "This line was not completed."}
    return {"id": "x", "custom_id": line["custom_id"], "response": response, "error": error}


def _contradicted(result: dict[str, Any]) -> dict[str, Any]:
    other: dict[str, Any] = json.loads(json.dumps(result))
    message = other["response"]["body"]["choices"][0]["message"]
    message["content"] = json.dumps(_turned(json.loads(message["content"])))
    return other


def _turned(labels: dict[str, Any]) -> dict[str, Any]:
    return {key: _turned(value) if isinstance(value, dict) else not value for key, value in labels.items()}


def _lines(items: list[dict[str, Any]], *, torn: bool = False) -> bytes:
    whole = "\n".join(json.dumps(item) for item in items).encode()
    return whole[: -len(whole) // (2 * len(items))] if torn else whole
