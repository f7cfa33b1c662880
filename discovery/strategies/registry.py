"""Every strategy by its name on the command line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from discovery.questions import Strategy, StrategyError
from discovery.strategies.adaptive import adaptive_pair, adaptive_triple
from discovery.strategies.auto import Auto
from discovery.strategies.hybrid import AdaptiveHybrid
from discovery.strategies.nonadaptive import RandomTriple, Tagging
from discovery.strategies.rephrased import Parts, Rephrased, as_left_right, as_two_of_three

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "auto": Auto,
    "adaptive-triple": adaptive_triple,
    "random-triple": RandomTriple,
    "adaptive-pair": adaptive_pair,
    "adaptive-hybrid": AdaptiveHybrid,
    "tagging": Tagging,
}

ASK: dict[str, Parts] = {"left-right": as_left_right, "two-of-three": as_two_of_three}


def make_strategy(
    name: str, n: int, rng: np.random.Generator, *, batch: int = 1, ask: str | None = None, **options: Any
) -> Strategy:
    """The strategy of that name for `n` examples. `ask` puts its questions by means of another kind of question."""
    if name not in STRATEGIES:
        raise StrategyError(f"unknown strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    if ask is not None and ask not in ASK:
        raise StrategyError(f"cannot ask by {ask!r}: choose one of {', '.join(ASK)}")
    if batch < 1:
        raise StrategyError(f"a batch of {batch} questions asks nothing: give 1 or more")
    build = STRATEGIES[name]
    taken = set(signature(build).parameters) - {"n", "rng"}
    for option in options:
        if option not in taken:
            known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
            raise StrategyError(f"strategy {name!r} has no option {option!r}: {known}")
    strategy = build(n, rng, **options)
    return Rephrased(strategy, ASK[ask], rng) if ask else strategy
