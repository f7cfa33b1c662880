"""Books probe requests like any question: each is claimed, sent and charged.

The scope of a run depends on the oracle's identity, and so on the probe. Hence probes are booked to a scope of the
server, and the first run that asks this oracle takes them over: a later one if this one is killed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable

from models.keys import kept_key
from models.openai.bounds import Bounds
from models.openai.client import Endpoint, Reply, RetriesExhausted
from models.openai.config import OpenAIConfig
from models.openai.errors import Fault
from models.openai.probe import PROBE_TOKENS, probe_key
from models.oracle import (
    NO_QUESTION,
    Answer,
    BudgetExhausted,
    Money,
    OracleIdentity,
    OracleUnavailable,
    Usage,
    Verdict,
    in_usd,
)
from models.prices import Tariff, Tokens, bound, settled
from models.recorded import LEASE_SECONDS, record_of
from store import PROBE, Request, Store, new_owner


def account_of(config: OpenAIConfig) -> str:
    return f"{PROBE} {probe_key(config)}"


class Account:
    """The books of one probe. Without a store nothing is booked."""

    def __init__(self, bounds: Bounds, store: Store | None, budget: Money | None) -> None:
        self._bounds = bounds
        self._config = bounds.config
        self._store = store
        self._budget = budget
        self._owner = new_owner()
        self._run_id = ""
        self._asked = uuid.uuid4().hex  # another probe is another question
        self._count = 0
        self.identity = OracleIdentity("openai", self._config.model, prompts=PROBE)

    async def pay(self, endpoint: Endpoint, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """Send a request and book what it cost. Raises BudgetExhausted where even this may cost more than allowed."""
        if self._store is None:
            return await send()
        tariff = self._bounds.decisions if endpoint == "decisions" else self._bounds.chat
        question = {"kind": PROBE, "server": probe_key(self._config), "asked": f"{self._asked}/{self._count}"}
        self._count += 1
        key = kept_key(self.identity.to_json(), question)
        fence = self._claim(self._store, key, bound(tariff, PROBE_TOKENS))
        started = time.monotonic()
        try:
            reply = await send()
        except BaseException as error:
            maybe_charged = isinstance(error, RetriesExhausted) and error.maybe_charged
            rejected = isinstance(error, Fault | OracleUnavailable) and not maybe_charged
            (self._store.claims.release if rejected else self._store.claims.abandon)(self._owner, [key])
            raise
        answer = self._answer(reply, tariff, round(time.monotonic() - started, 6))
        record = record_of(answer, key, fence, question, str(self.identity), self.identity.to_json())
        self._store.answers.record(self._run_id, [record])
        return reply

    def close(self) -> None:
        if self._store is not None and self._run_id:
            self._store.runs.end(self._run_id, "done", {})

    def _claim(self, store: Store, key: str, most: Money) -> int:
        scope, server = account_of(self._config), f"{self.identity} at {self._config.host}"
        if not self._run_id:
            self._run_id = str(uuid.uuid4())
            about = {"name": server, "flow": PROBE, "dataset": "", "oracle": str(self.identity)}
            store.runs.begin(self._run_id, scope, **about, settings={})
        request = Request(key, most, str(self.identity), PROBE)
        claimed = store.claims.claim(
            self._run_id,
            scope,
            [request],
            owner=self._owner,
            lease_seconds=LEASE_SECONDS,
            budget=self._budget,
            sending=1,
        )
        if claimed.refused:
            raise BudgetExhausted(
                f"budget of {in_usd(self._budget or 0, 6)}: to find out what {server} can do may take "
                f"{in_usd(most, 6)} more: raise --budget and run again"
            )
        return claimed.granted[key]

    def _answer(self, reply: Reply, tariff: Tariff, seconds: float) -> Answer:
        """As for questions: a reply without usage costs its upper bound, one that is not JSON nothing."""
        cost, tokens = 0, reply.tokens or Tokens()
        if reply.tokens is not None:
            cost = settled(tariff, tokens)
        elif reply.data is not None:
            tokens, cost = PROBE_TOKENS, bound(tariff, PROBE_TOKENS)
        usage = Usage(1, tokens.input, tokens.output, tokens.cached, tokens.reasoning)
        about = "asked what it can do"
        by = str(self.identity)
        return Answer(NO_QUESTION, Verdict.NONE, by, usage=usage, cost=cost, seconds=seconds, note=about)
