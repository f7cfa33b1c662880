"""Which question comes next."""

from discovery.strategies.adaptive import Listed, adaptive_triple
from discovery.strategies.growing import NARROWEST, WIDEST
from discovery.strategies.registry import STRATEGIES, make_strategy
from discovery.strategies.targeted import Targeted, target_outputs
