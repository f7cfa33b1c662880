"""An oracle behind any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp, transformers serve, …"""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twothirds.models.openai.abilities import Abilities, Remembered, probe_key
from twothirds.models.openai.account import Account, Sending, Server, Spent, Stopped
from twothirds.models.openai.batch import collect
from twothirds.models.openai.chat import ask
from twothirds.models.openai.client import Client, SharedLimit, unsaid
from twothirds.models.openai.config import YES_FROM, OpenAIConfig
from twothirds.models.openai.errors import LONGEST_DELAY
from twothirds.models.openai.pace import Pace
from twothirds.models.openai.probe import MOST_REQUESTS, PROBE_TOKENS, USUAL_TOKENS, probe
from twothirds.models.openai.tokens import Pricing
from twothirds.models.oracle import (
    AnswersPending,
    BudgetExhausted,
    ClaimLost,
    Label,
    Meter,
    OracleIdentity,
    OracleUnavailable,
    Overcharged,
    Probe,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    digest_of,
)
from twothirds.models.prices import bound, settled
from twothirds.models.prompting import LABELS_VERSION, ImageUrls
from twothirds.sources import Example
from twothirds.store import Rate

if TYPE_CHECKING:
    from twothirds.store import Rates

READY = 2  # times as many requests as may be in flight are made ready: they hold their pictures
CLOSING_SECONDS = 3.0
CLOSED = "the oracle was closed while it was asked"


class OpenAIOracle:
    """Safe to use from many threads. `remembered` keeps what servers can do between runs; without it each run probes.
    Processes with the same `rates` share the limits of the server, and `notice` is told of longer pauses."""

    def __init__(
        self,
        config: OpenAIConfig,
        remembered: Remembered | dict[str, Any] | None = None,
        rates: Rates | None = None,
        notice: Callable[[str, str], None] = unsaid,
    ) -> None:
        self.config = config
        self.identity = identity_of(config)
        self._digest = digest_of(self.identity.to_json())[:32]
        self._remembered: Remembered | dict[str, Any] = {} if remembered is None else remembered
        self._rates, self._notice = rates, notice
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._closed = False
        self._images = ImageUrls(config.image_size, config.frames)
        self._unknown = Pricing.of(config, Abilities())  # raises UnknownPrice before anything is sent
        self._known: Pricing | None = None
        known = self._pricing
        speed = (known.abilities.rate, known.abilities.width) if known else (0.0, 0)
        self._pace = Pace(config.concurrency, is_free=not self._unknown.is_paid, rate=speed[0], width=speed[1])

    @property
    def traits(self) -> Traits:
        paid, config = self._unknown.is_paid, self.config
        return Traits(
            profile="paid" if paid else "local",
            width=self._pace.width,
            slow=config.provider_batch,
            shares_rows=paid and config.grouping in ("auto", "example"),
        )

    @property
    def _pricing(self) -> Pricing | None:
        """None where it is not remembered what the server can do."""
        if self._known is None and (known := Abilities.from_json(self._remembered.get(probe_key(self.config)))):
            self._known = replace(self._unknown, abilities=known)
        return self._known

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        """A server that was not probed yet is taken for one that enforces a schema, as most do."""
        pricing = self._pricing
        if pricing is None and questions:
            yield self._probe_request()
        if pricing is None:
            pricing = replace(self._unknown, abilities=Abilities(format="json_schema"))
        yield from pricing.requests(questions, self._pace)

    def _probe_request(self) -> Request:
        tariffs = self._unknown.tariffs.values()
        most = max(bound(tariff, PROBE_TOKENS) for tariff in tariffs)
        usual = max(settled(tariff, USUAL_TOKENS) for tariff in tariffs)
        number = Probe(probe_key(self.config), uuid4().hex)
        return Request(probe=number, bound=most, limit=MOST_REQUESTS * most, usual=usual)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002
        """A free request, unless what the server can do is remembered: stored answers can be had without it."""
        if self._pricing is None:
            worker = self._opened()
            worker.start(worker.client.greet()).result()
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        return _Dispatch(self, self._opened(), meter).replies(iter(requests))

    async def ask(self, sending: Sending, request: Request, client: Client) -> None:
        account = Account(self._server(client), sending, request)
        with account_closed(account):
            if request.probe is None:
                await ask(account)
            else:
                await self._probe(account)

    async def collect(self, sending: Sending, requests: Sequence[Request], client: Client) -> None:
        server = self._server(client)
        accounts = [Account(server, sending, request) for request in requests]
        with account_closed(*accounts):
            await collect(server, sending, accounts)

    async def _probe(self, account: Account) -> None:
        try:
            found = await probe(account)
        except Spent:
            host = self.config.host
            raise OracleUnavailable(f"{host} fails while it is asked what it can do: run again later") from None
        self._remembered[probe_key(self.config)] = found.to_json()
        self._known = replace(self._unknown, abilities=found)

    def _server(self, client: Client) -> Server:
        pricing = self._pricing or self._unknown
        return Server(
            self.config, pricing.abilities, pricing, client, self._images, digest_of(self.identity.to_json())[:32]
        )

    def _opened(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise OracleUnavailable(CLOSED)
            if self._worker is None:
                self._worker = _Worker(self._client)
            return self._worker

    def _client(self) -> Client:
        config = self.config
        if self._rates is None:
            return Client(config, self._pace)
        rate = Rate(config.requests_per_minute, config.tokens_per_minute)
        longest = max(config.longest_wait, LONGEST_DELAY)
        name = f"openai:{config.model}@{config.host}"
        return Client(config, self._pace, SharedLimit(self._rates, name, rate, self._notice, longest))

    def close(self) -> None:
        """End the connections and the thread. The oracle cannot be asked afterwards."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.close()
            if self._known is not None:
                known, pace = self._known.abilities, self._pace
                seen = replace(known, rate=round(pace.rate, 2), width=pace.width if pace.rate else 0)
                if seen != known:
                    self._remembered[probe_key(self.config)] = seen.to_json()

    def __enter__(self) -> OpenAIOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"openai:{self.config.model} at {self.config.host}"


def identity_of(config: OpenAIConfig) -> OracleIdentity:
    """Of what the user asks for, not of what a server is found to do."""
    asked = {
        "output": config.output,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
        "image_size": config.image_size,
        "detail": config.detail,
        "frames": config.frames,
        **({"sheet": config.sheet} if config.draws_sheets else {}),
        **({} if config.label_reply == "each" else {"label_reply": config.label_reply}),
        **({} if config.yes_from == YES_FROM else {"yes_from": config.yes_from}),
        "grouping": config.grouping,
        "labels_per_request": config.most_labels,
        "logprobs": config.logprobs,
        "served_by": config.server,
        **dict(config.brief.parameters),
    }
    return OracleIdentity("openai", config.model, tuple(asked.items()), LABELS_VERSION)


@contextmanager
def account_closed(*accounts: Account) -> Iterator[None]:
    """Around asking: what the budget, another claim, or a fault elsewhere has ended ends with what it has."""
    try:
        with suppress(BudgetExhausted, ClaimLost, Overcharged, Stopped):
            yield
    finally:
        for account in accounts:
            account.finish()


class _Dispatch:
    """One call of `send`. After a fault nothing more is pulled or leaves; what is in flight is waited for, then the
    fault is raised. Requests are pulled in the caller's thread: their source may be bound to it."""

    def __init__(self, oracle: OpenAIOracle, worker: _Worker, meter: Meter) -> None:
        self._oracle, self._worker, self._config = oracle, worker, oracle.config
        self._arrived: queue.SimpleQueue[Reply | Future[None]] = queue.SimpleQueue()
        self._sending = Sending(meter, self._arrived.put)
        self._running: set[Future[None]] = set()
        self._labels: list[Request] = []  # for the next batch
        self._exhausted = False
        self._error: BaseException | None = None

    def replies(self, source: Iterator[Request]) -> Iterator[Reply]:
        try:
            while True:
                self._pull(source)
                if not self._running:
                    break
                came = self._arrived.get()
                if isinstance(came, Reply):
                    yield came
                else:
                    self._end(came)
        finally:
            for future in self._running:
                future.cancel()
        if self._error is None and self._sending.overcharge is not None:
            self._error = Overcharged(str(self._sending.overcharge))
        if self._error is not None:
            raise self._error

    def _pull(self, source: Iterator[Request]) -> None:
        while not self._exhausted and not self._is_over and len(self._running) < READY * self._oracle.traits.width:
            try:
                request = next(source)
            except StopIteration:
                self._exhausted = True
            except Exception as error:  # raised once what was pulled has been answered
                self._exhausted, self._error = True, error
            else:
                if self._config.provider_batch and request.probe is None and isinstance(request.questions[0], Label):
                    self._labels.append(request)
                    self._collect(self._config.batch_questions)
                else:
                    self._start(self._oracle.ask(self._sending, request, self._worker.client))
        if self._exhausted and not self._is_over:
            self._collect(1)

    def _collect(self, fewest: int) -> None:
        """Put so many labels into a batch."""
        if sum(len(request.questions) for request in self._labels) >= fewest:
            self._start(self._oracle.collect(self._sending, self._labels, self._worker.client))
            self._labels = []

    @property
    def _is_over(self) -> bool:
        return self._sending.is_over or self._sending.overcharge is not None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        future = self._worker.start(work)
        self._running.add(future)
        future.add_done_callback(self._arrived.put)

    def _end(self, ended: Future[None]) -> None:
        self._running.discard(ended)
        error = OracleUnavailable(CLOSED) if ended.cancelled() else ended.exception()
        if error is not None:
            self._sending.is_over |= not isinstance(error, AnswersPending)
            if self._error is None or isinstance(self._error, AnswersPending):  # an outage is reported first
                self._error = error


class _Worker:
    """An event loop in a thread of its own, with a client that asks there."""

    def __init__(self, client: Callable[[], Client]) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Client]] = Future()
        thread = threading.Thread(target=asyncio.run, args=(_serve(client, started),), name="openai", daemon=True)
        thread.start()
        self._loop, stop, self.client = started.result()
        # Runs at the latest when the interpreter exits: no thread, socket or warning is left behind.
        self.close = weakref.finalize(self, _stop, self._loop, stop, thread)

    def start(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop has ended
            work.close()
            raise OracleUnavailable(CLOSED) from None


async def _serve(
    client: Callable[[], Client], started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Client]]
) -> None:
    stop = asyncio.Event()
    try:
        asking = client()
    except BaseException as error:
        started.set_exception(error)
        return
    started.set_result((asyncio.get_running_loop(), stop, asking))
    del client, started  # which hold the oracle: it ends with its last user, and this loop with it
    await stop.wait()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asking.close()


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, thread: threading.Thread) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(stop.set)
        if thread is not threading.current_thread():  # garbage may be collected in that very thread
            thread.join(CLOSING_SECONDS)
