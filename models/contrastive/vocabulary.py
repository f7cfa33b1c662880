"""Words a contrastive model may name: each phrase with a definition and other ways to say it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from twothirds.models.oracle import OracleUnavailable, digest_of

FILE_NAME = "vocabulary.json"  # beside a model's weights
TEMPLATES = ("{}", "a picture of {}", "a photo that shows {}", "an image with {}", "this shows {}")


@dataclass(frozen=True, slots=True)
class Phrase:
    name: str
    definition: str = ""
    paraphrases: tuple[str, ...] = ()

    @property
    def prompts(self) -> tuple[str, ...]:
        """Different ways to put the same question, the plain name first: one voter takes one of them."""
        phrases = (self.name, *self.paraphrases)
        return phrases + tuple(template.format(self.name) for template in TEMPLATES[1:])


@dataclass(frozen=True)
class Vocabulary:
    phrases: tuple[Phrase, ...]

    def __post_init__(self) -> None:
        if not self.phrases:
            raise OracleUnavailable("the vocabulary is empty: give at least one phrase")

    @property
    def digest(self) -> str:
        return digest_of([[phrase.name, phrase.definition, phrase.paraphrases] for phrase in self.phrases])[:16]

    def phrase(self, name: str) -> Phrase:
        """The phrase of that name; a name that is not listed is a phrase without paraphrases."""
        folded = fold(name)
        return next((phrase for phrase in self.phrases if fold(phrase.name) == folded), Phrase(name))


def fold(name: str) -> str:
    return " ".join(name.casefold().split())


def given(words: Iterable[str]) -> Vocabulary:
    unique: dict[str, str] = {}
    for word in words:
        if word.strip():
            unique.setdefault(fold(word), word.strip())
    return Vocabulary(tuple(map(Phrase, unique.values())))


def read(path: Path) -> Vocabulary:
    """A JSON list of phrases (strings, or objects with `name`, `definition`, `paraphrases`), or one phrase a line."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OracleUnavailable(f"vocabulary {str(path)!r} cannot be read: {error}") from error
    if path.suffix != ".json":
        return given(content.splitlines())
    try:
        return Vocabulary(tuple(_phrase(item) for item in json.loads(content)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        reason = "is not a JSON list of phrases (strings, or objects with a name each)"
        raise OracleUnavailable(f"vocabulary {str(path)!r} {reason}: correct it, or give a text file") from None


def _phrase(item: str | dict[str, str | Sequence[str]]) -> Phrase:
    if isinstance(item, str):
        return Phrase(item)
    return Phrase(str(item["name"]), str(item.get("definition", "")), tuple(item.get("paraphrases", ())))
