"""What the user says about the data: what it is, what the features are for, which kinds are wanted and which are not.

It stands before the material, quoted like all material, and the system message says what it is. Without it prompts are
what they are without this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.oracle import Compare, OracleError, Question
from models.prompting.prompts import Message, quoted

MAX_CHARS = 4_000
ABOUT = 'The line "About the data" is the user\'s own: what the data is and what the features are for. Keep to it.'
AVOID = 'Name nothing of the kinds that the line "Not wanted" lists.'


@dataclass(frozen=True, slots=True)
class Brief:
    about: str = ""
    avoid: str = ""  # kinds of features that comparisons should not name

    def __post_init__(self) -> None:
        for name in ("about", "avoid"):
            if len(text := getattr(self, name)) > MAX_CHARS:
                raise OracleError(f"{name} has {len(text):,} characters: shorten it to {MAX_CHARS:,}")

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Of an oracle's identity; none where nothing is said."""
        return tuple((name, text) for name, text in (("about", self.about), ("avoid", self.avoid)) if text)

    def of(self, question: Question) -> Brief:
        """What is said with this question."""
        return replace(self, about=question.about) if isinstance(question, Compare) and question.about else self

    def added_to(self, messages: Sequence[Message], *, comparing: bool = False) -> list[Message]:
        """The messages with what the user says before their material."""
        lines, rules = "", []
        if self.about:
            lines, rules = f"About the data: {quoted(self.about)}\n", [ABOUT]
        if self.avoid and comparing:
            lines, rules = f"{lines}Not wanted: {quoted(self.avoid)}\n", [*rules, AVOID]
        if not rules:
            return list(messages)
        system, user, *rest = messages
        instructed = Message(system.role, (*system.parts, "".join(f"\n{rule}" for rule in rules)))
        return [instructed, Message(user.role, (lines, *user.parts)), *rest]
