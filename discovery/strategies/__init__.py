"""Which question comes next."""

from twothirds.discovery.strategies.adaptive import Listed, adaptive_triple
from twothirds.discovery.strategies.growing import NARROWEST, WIDEST
from twothirds.discovery.strategies.registry import STRATEGIES, make_strategy
from twothirds.discovery.strategies.targeted import Targeted, target_outputs
