"""What a discovery asks by default, by who answers: one row of a table, chosen once, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twothirds.discovery.strategies import NARROWEST, WIDEST
from twothirds.models import Traits
from twothirds.sources import Example

SHORT_TEXT = 2_000  # characters of a text on average, up to which a question costs next to nothing beside its labels


@dataclass(frozen=True, slots=True)
class Profile:
    queries: int = 35  # comparisons at most
    features: int = 1  # that an answer may hold
    widest: int = WIDEST  # examples that a question of the strategy auto shows at most
    labels_after: int | None = 1  # comparisons after which what they found is labelled; None: all at the end


PAPER = CROWD = Profile()
PEOPLE = Profile(widest=NARROWEST)
MODEL = Profile(features=3)
# It knows any number of rare names: two of many examples seldom share what one or two of three have.
CONTRASTIVE = Profile(features=3, widest=NARROWEST)
# Paid by the token. A picture is the price: few questions are asked, each for many features. docs/discover.md has the
# reckoning.
PAID_PICTURES = Profile(queries=12, features=8, widest=NARROWEST, labels_after=None)
PAID_TEXTS = Profile(queries=24, features=8, labels_after=None)
LABELS_FOR_A_TARGET = 4  # comparisons after which labels say what the next ones are about


BY_PROFILE = {"paid": MODEL, "local": MODEL, "people": PEOPLE, "free": CROWD}


def usual_profile(strategy: str, asked: Traits, examples: Sequence[Example]) -> Profile:
    """`asked` is who compares. Strategies of the paper ask as the paper does."""
    if strategy != "auto":
        return PAPER
    if asked.shares_rows:
        return PAID_PICTURES if is_dear(examples) else PAID_TEXTS
    return BY_PROFILE[asked.profile] if asked.reads_text else CONTRASTIVE


def is_dear(examples: Sequence[Example]) -> bool:
    """Whether a question about several of them costs much: pictures, and long texts."""
    texts = [len(example.text or "") for example in examples]
    return any(example.image is not None for example in examples) or sum(texts) > SHORT_TEXT * len(texts)
