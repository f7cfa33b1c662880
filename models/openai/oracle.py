"""An oracle behind any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp, transformers serve, …"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from types import TracebackType
from typing import Any

from twothirds.models.event_loop import Background
from twothirds.models.openai.batch import BatchDispatch
from twothirds.models.openai.bounds import Bounds, may_ask_one_by_one
from twothirds.models.openai.client import Client
from twothirds.models.openai.config import YES_FROM, OpenAIConfig
from twothirds.models.openai.dispatch import READY, Dispatch
from twothirds.models.openai.errors import Fault
from twothirds.models.openai.pace import Pace
from twothirds.models.openai.probe import Abilities, Remembered, probe, probe_key
from twothirds.models.openai.probe_account import Account, account_of
from twothirds.models.openai.session import Session, untold
from twothirds.models.oracle import (
    MICRO,
    NOTHING_MEASURED,
    Answer,
    Forecast,
    Leaving,
    Measured,
    Money,
    NoteBatch,
    OracleError,
    OracleIdentity,
    OracleUnavailable,
    PlannedRequest,
    Question,
    Traffic,
)
from twothirds.models.prices import Tokens, bound
from twothirds.models.prompting import LABELS_VERSION, ImageUrls
from twothirds.sources import Example
from twothirds.store import Job, Store


class OpenAIOracle:
    """Safe to use from many threads. `remembered` keeps what servers can do between runs; without it each run probes.
    Processes with one `store` share the rate limits of the server, and probes are booked there, within `budget`, until
    a run that asks takes them over."""

    def __init__(
        self,
        config: OpenAIConfig,
        remembered: Remembered | dict[str, Any] | None = None,
        store: Store | None = None,
        budget: Money | None = None,
        purpose: str = "",
        job: Job | None = None,
    ) -> None:
        """`purpose` is the same for every repetition of a run, whatever the server is found to do: its probes are
        booked together. They count to the `job`."""
        self.config = config
        self.account = account_of(config, purpose)
        self._store = store
        self._budget = budget
        self._job = job
        self._remembered: Remembered | dict[str, Any] = {} if remembered is None else remembered
        self._lock = threading.Lock()
        self._background: Background | None = None
        self._session: Session | None = None
        self._tariff = Bounds.of(config, Abilities()).chat  # raises UnknownPrice before anything is sent
        grouped = 1 if config.grouping == "none" else config.most_labels
        ready = max(config.concurrency, grouped)  # pulled ahead, so that no slot stays empty
        self.width = config.batch_questions if config.provider_batch else config.concurrency * grouped + ready

    def connect(self) -> None:
        """Probe the server, unless what it can do is remembered; the probe is booked."""
        self._opened()

    def check(self, examples: Sequence[Example]) -> None:  # noqa: ARG002
        """A free request, unless what the server can do is remembered: stored answers can be had without it."""
        if not self.is_probed():
            with closing(Background("openai-check")) as background:
                background.start(self._greet()).result()

    async def _greet(self) -> None:
        client = Client(self.config)
        try:
            await client.greet()
        finally:
            await client.close()

    def is_probed(self) -> bool:
        return self._known_abilities() is not None

    @property
    def identity(self) -> OracleIdentity:
        return self._connected.identity

    @property
    def rows_save(self) -> bool:
        return self._is_paid and self.config.grouping in ("auto", "example")

    @property
    def _is_paid(self) -> bool:
        return bound(self._tariff, Tokens(MICRO, MICRO)) > 0

    @property
    def traffic(self) -> Traffic:
        return self._session.client.traffic if self._session else Traffic()

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        bounds = self._connected.bounds
        return [bounds.price(question) for question in questions]

    def measured(self, examples: Iterable[Example]) -> Measured:
        """By answers to prompts that showed pictures as these are shown: else their tokens say nothing."""
        if self._store is None:
            return NOTHING_MEASURED
        pictures = {name: getattr(self.config, name) for name in ("image_size", "detail", "frames")}
        pictures |= _sheets(self.config)
        stored = self._store.costs.latest(f"openai:{self.config.model}", LABELS_VERSION, pictures)
        return self._expected_bounds().measured(stored, examples)

    def forecast(self, questions: Sequence[Question], measured: Measured = NOTHING_MEASURED) -> Forecast:
        """Sends nothing: a server that was not probed yet is taken for one that enforces a schema, as most do."""
        return self._expected_bounds().forecast(questions, measured, self.width)

    def _expected_bounds(self) -> Bounds:
        return Bounds.of(self.config, self._known_abilities() or Abilities(format="json_schema"))

    def requests(self, questions: Sequence[Question], *, more: bool = False) -> list[PlannedRequest]:
        """To a slow server only those that are sent next: the others may get another size by then."""
        session = self._connected
        most, at_once = session.client.pace.most_labels, READY * session.client.pace.width
        requests = session.bounds.requests(questions, more=more, most_labels=most)
        return requests if most is None else requests[:at_once]

    def scale_bounds(self, scale: float) -> None:
        with self._lock:
            session = self._connected
            seen = max([session.bounds.scale, *(overcharge.scale for overcharge in session.overcharges)])
            self._session = replace(session, bounds=replace(session.bounds, scale=max(seen, scale)), overcharges=[])

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        return self._dispatch(untold, lambda _questions, _batch: None).run(iter(questions))

    def ask_telling(
        self, requests: Iterable[Sequence[Question]], leaving: Leaving, note: NoteBatch
    ) -> Iterator[Answer]:
        return self._dispatch(leaving, note).run_groups(iter(requests))

    def _dispatch(self, leaving: Leaving, note: NoteBatch) -> Dispatch:
        session, background = self._opened()
        if self.config.provider_batch:
            return BatchDispatch(session, background, self.width, leaving, note)
        return Dispatch(session, background, self.width, leaving)

    def ask_anew(self, questions: Sequence[Question], since: float) -> None:
        self._opened()[0].anew.update((question, since) for question in questions)

    def close(self) -> None:
        """End the connections and the thread. The oracle cannot be asked afterwards."""
        with self._lock:
            if self._background is not None:
                self._background.close()
            if self._session is not None:
                pace = self._session.client.pace
                seen = replace(self._session.abilities, rate=round(pace.rate, 2), width=pace.width if pace.rate else 0)
                if seen != self._session.abilities:
                    self._remembered[probe_key(self.config)] = seen.to_json()

    def __enter__(self) -> OpenAIOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"openai:{self.config.model} at {self.config.host}"

    @property
    def _connected(self) -> Session:
        if self._session is None:
            raise OracleError(f"what {self!r} can do is not known yet: call connect() first")
        return self._session

    def _opened(self) -> tuple[Session, Background]:
        with self._lock:
            if self._background is None:
                self._background = Background("openai")
            if self._session is None:
                self._session = self._background.start(self._open(self._background)).result()
            return self._session, self._background

    async def _open(self, background: Background) -> Session:
        abilities, scale = self._known_abilities(), 1.0
        speed = (abilities.rate, abilities.width) if abilities else (0.0, 0)
        pace = Pace(self.config.concurrency, is_free=not self._is_paid, rate=speed[0], width=speed[1])
        client = Client(self.config, self._store, pace)
        background.at_close(client.close)
        if abilities is None:
            abilities, scale = await self._probe(client)
            self._remembered[probe_key(self.config)] = abilities.to_json()
        bounds = replace(Bounds.of(self.config, abilities), scale=scale)
        images = ImageUrls(self.config.image_size, self.config.frames)
        return Session(self.config, abilities, bounds, client, images, identity_of(bounds))

    async def _probe(self, client: Client) -> tuple[Abilities, float]:
        """And how many times their bounds the probes were charged."""
        account = Account(Bounds.of(self.config, Abilities()), self.account, self._store, self._budget, self._job)
        try:
            return await probe(client, account, one_by_one=may_ask_one_by_one(self.config, self._tariff)), account.scale
        except Fault as fault:
            raise OracleUnavailable(f"{self.config.host} does not answer as it should: {fault}") from None
        finally:
            await asyncio.to_thread(account.close)

    def _known_abilities(self) -> Abilities | None:
        known = self._remembered.get(probe_key(self.config))
        return None if known is None else Abilities.from_json(known)


def identity_of(bounds: Bounds) -> OracleIdentity:
    config, abilities = bounds.config, bounds.abilities
    asked = {
        "format": abilities.format,
        "labels": "decisions" if bounds.labels_by_decisions else "next word" if bounds.labels_one_by_one else "chat",
        "missing": ",".join(abilities.missing),
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
        "image_size": config.image_size,
        "detail": config.detail,
        "frames": config.frames,
        **_sheets(config),
        **({} if config.label_reply == "each" else {"label_reply": config.label_reply}),
        **({} if config.yes_from == YES_FROM else {"yes_from": config.yes_from}),
        "grouping": config.grouping,
        "labels_per_request": config.most_labels,
        "logprobs": config.logprobs,
        "served_by": config.server,
        **dict(config.brief.parameters),
    }
    return OracleIdentity("openai", config.model, tuple(asked.items()), LABELS_VERSION)


def _sheets(config: OpenAIConfig) -> dict[str, str]:
    """Of an oracle's identity; nothing where questions never travel on sheets."""
    return {"sheet": config.sheet} if config.draws_sheets else {}
