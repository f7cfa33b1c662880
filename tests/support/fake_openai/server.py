"""An OpenAI-compatible server for tests: chat completions, decisions, files, batches and models, with its own book."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.support.fake_openai.batches import Batches
from tests.support.fake_openai.faults import CHARGED, FAILURES, REPEATS, SPOILERS, USAGES, repeat_prompt
from tests.support.fake_openai.mind import FakeModel, Page, example_of_schema, fresh_numbers, read_page
from tests.support.fake_openai.wire import Request, Response, Server
from twothirds.models.openai.probe import YES_OR_NO
from twothirds.models.prices import Price, read_usage, settled

CHAT, DECISIONS = "/v1/chat/completions", "/v1/decisions"
COMPARISONS, LABELS = f"{CHAT}#comparisons", f"{CHAT}#labels"  # the two kinds of questions, for scripts
COUNTS = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
PROBES = ("Say hello.", "Hello!", YES_OR_NO)  # with which is found out what a server can do
FILES, BATCHES = "/v1/files", "/v1/batches"


class Rejected(Exception):
    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.response = Response.of({"error": {"message": message, "code": code, "param": param}}, status)


@dataclass
class Abilities:
    """What this server and its model can do."""

    models: tuple[str, ...] = ("gpt-4o-mini",)
    key: str = ""  # the only one accepted; empty accepts all
    always: int = 0  # the status of every reply, where it is not 0
    decisions: bool = False
    formats: tuple[str, ...] = ("json_schema", "json_object")
    ignores_format: bool = False  # takes response_format and does not apply it
    unsupported: tuple[str, ...] = ()  # parameters that are answered with status 400
    sees: bool = True
    context: int = 100_000  # tokens
    chatty: bool = False  # wraps its JSON in prose
    reasoning: int = 0  # tokens thought before every answer
    overcharge: int = 1  # times the tokens of a question are charged
    cached: float = 0.0  # share of the prompt said to be cached
    latency: float = 0.0
    tokens_per_second: float = 0.0  # that a request writes; it reads 8 times as many; 0: any number
    slots: int = 0  # requests that are worked on at a time; 0: all
    stubborn: bool = False  # says again, word for word, what a repair finds fault with
    forbidden: str = ""  # a word for which the server declines the request


@dataclass
class Charge:
    path: str
    usage: dict[str, Any]
    probe: bool = False  # to find out what the server can do


class FakeOpenAI:
    """`with FakeOpenAI(mind) as server:` — `server.base_url` is where it listens, `server.book` what it charged."""

    def __init__(self, mind: FakeModel | None = None, abilities: Abilities | None = None, port: int = 0) -> None:
        self.mind = mind or FakeModel()
        self.abilities = abilities or Abilities()
        self.requests: list[Request] = []
        self.book: list[Charge] = []
        self.processed: list[Charge] = []  # what the provider's bill shows, whether or not a reply said so
        self.batches = Batches(self)
        self.echo: tuple[str, ...] = ()  # said in every reply and every error
        self.answers_left: int | None = None  # after so many it is down
        self._scripts: dict[str, deque[str | None]] = defaultdict(deque)
        self._chance: tuple[float, Sequence[str], int] | None = None
        self._seen: Counter[str] = Counter()
        self._server = Server(self._answer, lambda: self.abilities.slots)
        self._server.port = port

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}/v1"

    @property
    def most_at_once(self) -> int:
        """The most requests that were being answered at the same time."""
        return self._server.most_at_once

    def answer_together(self, count: int) -> None:
        """From now on the first replies wait until so many requests have been there at once."""
        self._server.together = count

    def spent(self, price: Price) -> int:
        """What the book comes to in micro-dollars; batches at half the price."""
        return self._sum(self.book, price)

    def spent_on_questions(self, price: Price) -> int:
        """The same without what it took to find out about the server."""
        return self._sum(self.book_of_questions, price)

    def billed(self, price: Price) -> int:
        """What the provider charges for all that the model has answered, also where the reply never came."""
        return self._sum(self.processed, price)

    @property
    def book_of_questions(self) -> list[Charge]:
        return [charge for charge in self.book if not charge.probe]

    @staticmethod
    def _sum(charges: Iterable[Charge], price: Price) -> int:
        total = 0
        for charge in charges:
            tokens = read_usage({"usage": charge.usage})
            assert tokens is not None
            total += settled(price, tokens, batch=charge.path == "batch")
        return total

    def script(self, path: str, faults: Iterable[str | None]) -> None:
        """The next requests to a path, or of a kind, fail in this order; None is a good reply."""
        self._scripts[path].extend(faults)

    def misbehave(self, share: float, kinds: Sequence[str], seed: int = 0) -> None:
        """Each reply is bad with this chance, in one of these ways."""
        self._chance = (share, kinds, seed)

    @property
    def longest(self) -> float:
        """Seconds of work on one request."""
        return max(self._seconds(charge.usage) for charge in self.processed)

    def count(self, path: str) -> int:
        return sum(request.path == path for request in self.requests)

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [request.json() for request in self.requests if request.path == path]

    def _answer(self, request: Request) -> Response:
        self.requests.append(request)
        if self.answers_left is not None:
            self.answers_left -= 1
            if self.answers_left < 0:
                return Response(b"", silent=True)
        try:
            self._admit(request)
            response = self._route(request)
        except Rejected as rejected:
            response = rejected.response
        if self.echo and response.status >= 400:
            response.body = json.dumps({"error": {"message": f"not so: {' '.join(self.echo)}"}}).encode()
        return response

    def _admit(self, request: Request) -> None:
        if self.abilities.always:
            raise Rejected(self.abilities.always, "always")
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.abilities.key and key != self.abilities.key:
            raise Rejected(401, f"Incorrect API key provided: {key}", "invalid_api_key")

    def _route(self, request: Request) -> Response:
        if request.path in (CHAT, DECISIONS) and request.method == "POST":
            return self._spoiled(request.path, request.json())
        if request.path.startswith(("/v1/files", "/v1/batches")):
            good = self.batches.answer(request)
            script = self._scripts["/".join(request.path.split("/")[:3])]
            fault = script.popleft() if script else None
            return FAILURES[fault](good) if fault else good
        if request.path == "/v1/models":
            return Response.of(
                {"object": "list", "data": [{"id": m, "object": "model"} for m in self.abilities.models]}
            )
        raise Rejected(404, f"Invalid URL ({request.method} {request.path})")

    def _spoiled(self, path: str, body: dict[str, Any]) -> Response:
        fault = self._next_fault(path, body)
        data = self.complete(path, body)
        seconds = self._seconds(data["usage"])
        if fault not in FAILURES or fault in CHARGED:
            self.processed.append(Charge(path, dict(data["usage"]), _is_probe(body)))
        if fault == REPEATS:
            repeat_prompt(body, data)
        elif fault in SPOILERS:
            SPOILERS[fault](data)
        self._as_asked(body, data)
        good = Response.of(data)
        good.delay = self.abilities.latency + seconds
        if fault in FAILURES:
            return FAILURES[fault](good)
        if fault not in USAGES:
            self.book.append(Charge(path, data["usage"], _is_probe(body)))
        return good

    def _seconds(self, usage: Mapping[str, Any]) -> float:
        """That the work takes."""
        given, written = (next((usage[name] for name in names if name in usage), 0) for names in COUNTS)
        speed = self.abilities.tokens_per_second
        return (written + given / 8) / speed if speed else 0.0

    def _as_asked(self, body: dict[str, Any], data: dict[str, Any]) -> None:
        """Change a reply to the form that the request asks for, e.g. the call of a tool."""

    def _next_fault(self, path: str, body: dict[str, Any]) -> str | None:
        for name in (path, _kind_of_chat(body) if path == CHAT else ""):
            if self._scripts[name]:
                return self._scripts[name].popleft()
        if self._chance is None:
            return None
        share, kinds, seed = self._chance
        asked = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self._seen[asked] += 1  # the same request fares differently the next time, whatever comes between
        dice = random.Random(f"{seed}:{asked}:{self._seen[asked]}")
        return dice.choice(kinds) if dice.random() < share else None

    def complete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The reply of a healthy server."""
        able = self.abilities
        for name in able.unsupported:
            if name in body:
                raise Rejected(400, f"Unsupported parameter: '{name}' is not supported.", "unsupported_parameter", name)
        if body["model"] not in able.models:
            raise Rejected(404, f"The model `{body['model']}` does not exist", "model_not_found")
        if path == DECISIONS:
            return self._decide(body)
        page = read_page(body["messages"])
        asked = body.get("response_format", {}).get("type")
        if asked is not None and asked not in able.formats and not able.ignores_format:
            raise Rejected(400, f"response_format {asked} is not supported", param="response_format")
        content = self._content(page, body, None if able.ignores_format else asked)
        if able.stubborn:
            content = next((turn["content"] for turn in body["messages"] if turn["role"] == "assistant"), content)
        if self.echo and content.startswith("{"):
            content = json.dumps({"echo": list(self.echo), **json.loads(content)})
        usage = self._usage("chat", json.dumps(body["messages"]), page, content)
        message = {"role": "assistant", "content": content, "refusal": None}
        tokens = self.mind.tokens(page, content) if body.get("logprobs") else None
        return {
            "id": f"chatcmpl-{next(fresh_numbers)}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {"index": 0, "message": message, "finish_reason": "stop", "logprobs": tokens and {"content": tokens}}
            ],
            "usage": usage,
        }

    def _content(self, page: Page, body: dict[str, Any], enforced: str | None) -> str:
        if page.kind is not None:
            answer = json.dumps(self.mind.compare(page) if page.most == 1 else self.mind.compare_several(page))
        elif page.asks_why:
            answer = json.dumps(self.mind.why(page))
        elif page.asks_family or page.asks_value:
            answer = json.dumps(self.mind.family(page) if page.asks_family else self.mind.choose(page))
        elif page.asks_word:
            [(example, feature)] = page.cells().values()
            has = self.mind.has(example, feature, random.Random(page.seed))
            return ("Yes" if has else "No") + (", as far as I can see." if self.abilities.chatty else "")
        elif page.asks_labels:
            answer = json.dumps(self.mind.label(page), separators=(",", ":") if page.compact else None)
        elif str(body["messages"][0]["content"]).startswith(YES_OR_NO):
            return "Yes"
        elif enforced == "json_schema":
            return json.dumps(example_of_schema(body["response_format"]["json_schema"]["schema"]))
        else:
            return '{"greeting": "Hello!"}' if enforced == "json_object" else "Hello!"
        return f"Let me see.\n```json\n{answer}\n```\nI hope this helps!" if self.abilities.chatty else answer

    def _decide(self, body: dict[str, Any]) -> dict[str, Any]:
        if not self.abilities.decisions:
            raise Rejected(404, "Invalid URL (POST /v1/decisions)")
        if not 1 <= len(body["questions"]) <= 400:
            raise Rejected(400, "questions must hold 1 to 400 items", param="questions")
        page = Page() if isinstance(body["input"], str) else read_page(body["input"])
        answers = self.mind.decide(page, body["questions"])
        usage = self._usage("decisions", json.dumps([body["input"], body["questions"]]), page, "")
        return {"model": body["model"], "answers": answers, "usage": usage}

    def _usage(self, spelling: str, prompt: str, page: Page, content: str) -> dict[str, Any]:
        able = self.abilities
        pictures = [url for example in page.examples for url in example.pictures]
        if pictures and not able.sees:
            raise Rejected(400, "Invalid content type. image_url is only supported by certain models.")
        if able.forbidden and able.forbidden in prompt:
            raise Rejected(400, "flagged by our content policy", "content_policy_violation")
        given = (len(prompt) - sum(map(len, pictures))) // 4 + 85 * len(pictures)
        if given > able.context:
            message = f"This model's maximum context length is {able.context} tokens, you asked for {given}"
            raise Rejected(400, message, "context_length_exceeded")
        written = len(content) // 4 + 1 + able.reasoning if spelling == "chat" else 0
        if not any(words in prompt for words in PROBES):
            given, written = given * able.overcharge, written * able.overcharge
        names = ("prompt", "completion") if spelling == "chat" else ("input", "output")
        return {
            f"{names[0]}_tokens": given,
            f"{names[1]}_tokens": written,
            "total_tokens": given + written,
            f"{names[0]}_tokens_details": {"cached_tokens": int(given * able.cached), "cache_write_tokens": 0},
            f"{names[1]}_tokens_details": {"reasoning_tokens": able.reasoning if written else 0},
        }


def _is_probe(body: dict[str, Any]) -> bool:
    messages = body.get("messages") or [{}]
    return str(body.get("input") or messages[0].get("content")).startswith(PROBES)


def _kind_of_chat(body: dict[str, Any]) -> str:
    if _is_probe(body):
        return ""
    return LABELS if read_page(body["messages"]).kind is None else COMPARISONS
