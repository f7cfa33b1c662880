"""A local OpenAI-compatible server over real sockets, with faults on demand and a book of what it charged."""

from tests.fake_openai.batches import BatchManners
from tests.fake_openai.faults import FAILURES, SPOILERS
from tests.fake_openai.mind import Mind
from tests.fake_openai.server import CHAT, DECISIONS, Abilities, FakeOpenAI

__all__ = ["CHAT", "DECISIONS", "FAILURES", "SPOILERS", "Abilities", "BatchManners", "FakeOpenAI", "Mind"]
