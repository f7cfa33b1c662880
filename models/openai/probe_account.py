"""Books probe requests like any question: each is claimed, sent and charged, each attempt as a question of its own.

The scope of a run depends on the oracle's identity, and so on the probe. Hence the first probes are booked to an
account, a scope of their own, and the run takes them over: a later one if this one is killed. From then on the account
is the scope of that run, so that probes, however often they are repeated, share the budget of the answers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from math import ceil
from typing import Any

from twothirds.models.cached import LEASE_SECONDS
from twothirds.models.keys import stored_key
from twothirds.models.openai.bounds import Bounds
from twothirds.models.openai.client import FREE, Attempts, Endpoint
from twothirds.models.openai.client import Reply as ServerReply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Fault
from twothirds.models.openai.probe import PROBE_TOKENS, probe_key
from twothirds.models.oracle import (
    NO_QUESTION,
    Answer,
    BudgetExhausted,
    Money,
    OracleIdentity,
    OracleUnavailable,
    Overcharge,
    Usage,
    Verdict,
    in_usd,
)
from twothirds.models.prices import Tariff, bound, settled
from twothirds.store import PROBE, Job, Reply, Respondent, Store, Wanted, new_owner


def account_of(config: OpenAIConfig, purpose: str = "") -> str:
    return f"{PROBE} {purpose or probe_key(config)}"


class Account:
    """The books of one probe. Without a store nothing is booked."""

    def __init__(
        self, bounds: Bounds, account: str, store: Store | None, budget: Money | None, job: Job | None
    ) -> None:
        self._bounds = bounds
        self._config = bounds.config
        self._account = account
        self._store = store
        self._budget = budget
        self._job = job or Job()
        self._owner = new_owner()
        self._run_id = self._scope = ""
        self._asked = uuid.uuid4().hex  # another probe is another question
        self._count = 0
        self.scale = 1.0  # above 1 where a probe was charged more than its bound: what follows reserves as much
        self.identity = OracleIdentity("openai", self._config.model, prompts=PROBE)

    async def pay(self, endpoint: Endpoint, send: Callable[[Attempts], Awaitable[ServerReply]]) -> ServerReply:
        """Send a request and book what it cost. Raises BudgetExhausted where even this may cost more than allowed."""
        if self._store is None:
            return await send(FREE)
        tariff = self._bounds.decisions if endpoint == "decisions" else self._bounds.chat
        plain = bound(tariff, PROBE_TOKENS)
        most = ceil(plain * self.scale)
        attempts = _ProbeAttempts(self, self._store, most)
        started = time.monotonic()
        try:
            reply = await send(attempts)
        except BaseException as error:
            await attempts.end(uncharged=isinstance(error, Fault | OracleUnavailable))
            raise
        answer = self._answer(reply, tariff, most, round(time.monotonic() - started, 6))
        await attempts.record(answer)
        if answer.cost > most:
            self.scale = Overcharge(answer.cost, plain, self._server).scale
        return reply

    def close(self) -> None:
        if self._store is not None and self._run_id:
            self._store.runs.end(self._run_id, "done", {})

    def question(self) -> dict[str, Any]:
        self._count += 1
        return {"kind": PROBE, "server": probe_key(self._config), "asked": f"{self._asked}/{self._count - 1}"}

    def claim(self, store: Store, key: str, most: Money) -> int:
        """Claim the right to send one request, in the scope that pays for it at that moment; returns its number."""
        while True:
            self._begin(store)
            terms: dict[str, Any] = {"owner": self._owner, "lease_seconds": LEASE_SECONDS, "budget": self._budget}
            claimed = store.requests.claim(self._run_id, self._respondent, [Wanted((key,), most, PROBE)], **terms)
            if claimed.refused:
                raise BudgetExhausted(
                    f"budget of {in_usd(self._budget or 0, 6)}: to find out what {self._server} can do may take "
                    f"{in_usd(most, 6)} more: {store.runs.booked(self._run_id).remedy}"
                )
            [granted] = claimed.granted
            # Another process may have taken the account over since; what it found there it has taken along.
            if store.runs.scope_of(self._account) == self._scope:
                sent, _ = store.requests.send(self._run_id, self._owner, {granted.request: most}, self._budget)
                if sent:
                    return granted.request
            store.requests.release(self._owner, [granted.request])

    def end(self, store: Store, number: int, uncharged: bool) -> None:
        store.requests.release(self._owner, [number], uncharged=uncharged)

    def record(self, store: Store, answer: Answer, key: str, number: int, question: dict[str, Any]) -> None:
        usage = answer.usage
        reply = Reply(
            request=number,
            keys=(key,),
            answers={0: (question, answer.to_json())},
            cost=answer.cost,
            attempts=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            seconds=answer.seconds,
        )
        store.requests.record(self._run_id, [reply])

    @property
    def _respondent(self) -> Respondent:
        return Respondent(str(self.identity), self.identity.to_json())

    @property
    def _server(self) -> str:
        return f"{self.identity} at {self._config.host}"

    def _begin(self, store: Store) -> None:
        scope = store.runs.scope_of(self._account)
        if scope != self._scope:
            self.close()
            self._run_id, self._scope = str(uuid.uuid4()), scope
            store.runs.begin(
                self._run_id,
                scope,
                name=self._server,
                flow=PROBE,
                dataset="",
                oracle=str(self.identity),
                settings={},
                job=self._job,
            )

    def _answer(self, reply: ServerReply, tariff: Tariff, most: Money, seconds: float) -> Answer:
        """As for questions: a reply without usage costs its upper bound."""
        tokens = reply.tokens or PROBE_TOKENS
        cost = most if reply.tokens is None else settled(tariff, tokens)
        usage = Usage(1, tokens.input, tokens.output, tokens.cached, tokens.reasoning)
        note, by = "asked what it can do", str(self.identity)
        return Answer(NO_QUESTION, Verdict.NONE, by, usage=usage, cost=cost, seconds=seconds, note=note)


class _ProbeAttempts(Attempts):
    """The attempts at one probe request. One that may have been charged stays booked; the next is another charge."""

    def __init__(self, account: Account, store: Store, most: Money) -> None:
        self._account = account
        self._store = store
        self._most = most
        self._question: dict[str, Any] = {}
        self._key, self._number = "", 0

    async def leaving(self) -> None:
        if not self._key:
            self._question = self._account.question()
            key = stored_key(self._account.identity.to_json(), self._question)
            self._number = await asyncio.to_thread(self._account.claim, self._store, key, self._most)
            self._key = key

    async def failed(self, maybe_charged: bool) -> bool:
        if maybe_charged:
            await self.end(uncharged=False)
        return True

    async def end(self, *, uncharged: bool) -> None:
        if self._key:
            self._key = ""
            await asyncio.to_thread(self._account.end, self._store, self._number, uncharged)

    async def record(self, answer: Answer) -> None:
        record = partial(self._account.record, key=self._key, number=self._number, question=self._question)
        await asyncio.to_thread(record, self._store, answer)
