"""What a discovery asks by default, by who answers: one row of a table, chosen once, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twothirds.discovery.strategies import NARROWEST, WIDEST
from twothirds.flows.oracle_specs import OracleSpec
from twothirds.models import Oracle, rows_save
from twothirds.sources import Example

SHORT_TEXT = 2_000  # characters of a text on average, up to which a question costs next to nothing beside its labels
MODELS = ("openai", "vlm")


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


def usual_profile(strategy: str, oracle: str, built: Oracle, examples: Sequence[Example]) -> Profile:
    """`oracle` names who compares, `built` is the oracle or the crowd that answers. Strategies of the paper ask as the
    paper does."""
    from twothirds.models.people import MixedCrowd

    if strategy != "auto":
        return PAPER
    kind = OracleSpec.parse(oracle).kind
    if rows_save(built.elicits if isinstance(built, MixedCrowd) else built):
        return PAID_PICTURES if is_dear(examples) else PAID_TEXTS
    if kind == "contrastive":
        return CONTRASTIVE
    return PEOPLE if kind == "human" else MODEL if kind in MODELS else CROWD


def is_dear(examples: Sequence[Example]) -> bool:
    """Whether a question about several of them costs much: pictures, and long texts."""
    texts = [len(example.text or "") for example in examples]
    return any(example.image is not None for example in examples) or sum(texts) > SHORT_TEXT * len(texts)
