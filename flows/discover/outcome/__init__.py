"""What a discovery leaves behind."""

from flows.discover.outcome.money import Savings, Spent
from flows.discover.outcome.outcome import Outcome

__all__ = ["Outcome", "Savings", "Spent"]
