"""A local OpenAI-compatible server over real sockets, with faults on demand and a book of what it charged."""

from tests.support.fake_openai.batches import BatchManners
from tests.support.fake_openai.faults import CHARGED, FAILURES, IN_DOUBT, REPEATS, SPOILERS, USAGES
from tests.support.fake_openai.foreign import Served, WidelyReadServer
from tests.support.fake_openai.lifelike import Failings, LifelikeServer
from tests.support.fake_openai.mind import FakeModel
from tests.support.fake_openai.server import BATCHES, CHAT, COMPARISONS, DECISIONS, FILES, LABELS, Abilities, FakeOpenAI

__all__ = [
    "BATCHES",
    "CHARGED",
    "CHAT",
    "COMPARISONS",
    "DECISIONS",
    "FAILURES",
    "FILES",
    "IN_DOUBT",
    "LABELS",
    "REPEATS",
    "SPOILERS",
    "USAGES",
    "Abilities",
    "BatchManners",
    "Failings",
    "FakeModel",
    "FakeOpenAI",
    "LifelikeServer",
    "Served",
    "WidelyReadServer",
]
