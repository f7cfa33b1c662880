"""Which question comes next."""

from discovery.strategies.adaptive import adaptive_triple
from discovery.strategies.registry import STRATEGIES, make_strategy
