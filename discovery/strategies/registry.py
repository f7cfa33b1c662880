"""Every strategy by its name on the command line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from twothirds.discovery.questions import Strategy, StrategyError
from twothirds.discovery.strategies.adaptive import adaptive_pair, adaptive_triple
from twothirds.discovery.strategies.growing import Growing
from twothirds.discovery.strategies.hybrid import AdaptiveHybrid
from twothirds.discovery.strategies.nonadaptive import random_triple, tagging

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "auto": Growing,
    "adaptive-triple": adaptive_triple,
    "random-triple": random_triple,
    "adaptive-pair": adaptive_pair,
    "adaptive-hybrid": AdaptiveHybrid,
    "tagging": tagging,
}


def make_strategy(name: str, n: int, rng: np.random.Generator, **options: Any) -> Strategy:
    """The strategy of that name for `n` examples."""
    if name not in STRATEGIES:
        raise StrategyError(f"unknown strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    build = STRATEGIES[name]
    taken = set(signature(build).parameters) - {"n", "rng"}
    for option in options:
        if option not in taken:
            known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
            raise StrategyError(f"strategy {name!r} has no option {option!r}: {known}")
    return build(n, rng, **options)
