"""Claims of the questions that share a request: all of them are granted, or none, and the price of the request is
reserved for them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from models.keys import QuestionKeys
from models.oracle import Money, Oracle, Question, TellsRequests

if TYPE_CHECKING:
    from store import Claimed, Request, Store

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call


class Recording(Protocol):
    """What a batch takes from the oracle that it asks for."""

    oracle: Oracle
    store: Store
    keys: QuestionKeys
    who: tuple[str, dict[str, Any]]
    width: int
    run_id: str
    scope: str
    budget: Money | None
    retry_unusable: float | None
    halted: bool

    def count_lost(self, in_doubt: Money) -> None: ...


class Together(NamedTuple):
    """Keys of questions that share a request, and the most that each costs then."""

    keys: list[str]
    bounds: list[Money]


class Claiming:
    """Plans the requests for questions and claims them, for one owner."""

    def __init__(
        self,
        recorded: Recording,
        owner: str,
        questions: Mapping[str, Question],
        replaces: Mapping[str, float | None],
        key_of: Callable[[Question], str],
    ) -> None:
        self._recorded = recorded
        self._store = recorded.store
        self._owner = owner
        self._questions = questions
        self._replaces = replaces
        self._key_of = key_of
        self._reserved: dict[str, Money] = {}  # at least

    def planned(self, keys: Sequence[str], *, more: bool = False) -> list[Together]:
        oracle, questions = self._recorded.oracle, [self._questions[key] for key in keys]
        if not isinstance(oracle, TellsRequests):
            return [Together([key], [most]) for key, most in zip(keys, oracle.estimate(questions), strict=True)]
        planned = oracle.requests(questions, more=more)
        return [
            Together([self._key_of(question) for question in request.questions], list(request.bounds))
            for request in planned
        ]

    def claim(self, requests: Sequence[Together]) -> Claimed:
        """Claim the questions of these requests. One that the budget does not cover whole is not begun."""
        recorded = self._recorded
        bounds = {key: most for request in requests for key, most in zip(request.keys, request.bounds, strict=True)}
        claimed = self._store.claims.claim(
            recorded.run_id,
            recorded.scope,
            [self._request(key, most) for key, most in bounds.items()],
            owner=self._owner,
            lease_seconds=LEASE_SECONDS,
            budget=recorded.budget,
            sending=0 if isinstance(recorded.oracle, TellsRequests) else recorded.width,
        )
        if claimed.refused:
            self._release_torn(requests, claimed)
        # A question that was claimed before may have the reservation of then.
        self._reserved |= {key: bounds[key] for key, fence in claimed.granted.items() if fence == 1}
        return claimed

    def _release_torn(self, requests: Sequence[Together], claimed: Claimed) -> None:
        """Release what was claimed of requests of which a part was refused, unless a provider's batch holds it."""
        refused = set(claimed.refused)
        torn = [
            key
            for request in requests
            if refused.intersection(request.keys)
            for key in request.keys
            if key in claimed.granted
        ]
        released = set(torn).difference(self._store.claims.in_batches(torn)) if torn else set[str]()
        if released:
            self._store.claims.release(self._owner, released)
        for key in released:
            del claimed.granted[key]

    def shrunk(self, requests: Sequence[Together], refused: str) -> list[Together]:
        """Of the request with the question that was refused, as many as the rest of the budget covers together."""
        keys = next(request.keys for request in requests if refused in request.keys)
        spent, reserved = self._store.runs.spent(self._recorded.scope)
        left = (self._recorded.budget or 0) - spent - reserved
        fits, few, many = list[Together](), 0, len(keys)
        while many - few > 1:
            middle = (few + many) // 2
            planned = self.planned(keys[:middle])
            if sum(sum(request.bounds) for request in planned) <= left:
                fits, few = planned, middle
            else:
                many = middle
        return fits

    def _request(self, key: str, bound: Money) -> Request:
        from store import Request

        kind = self._questions[key].kind.value
        return Request(key, bound, self._recorded.who[0], kind, self._replaces.get(key))

    def cover(self, in_doubt: Mapping[str, Money]) -> bool:
        """Reserve what these may have cost after the next request, where more than was foreseen; False: the budget
        does not cover it."""
        more = {key: most for key, most in in_doubt.items() if most > self._reserved.get(key, 0)}
        recorded = self._recorded
        if more and not self._store.claims.reserve_more(
            recorded.run_id, recorded.scope, self._owner, more, recorded.budget
        ):
            return False
        self._reserved |= more
        return True
