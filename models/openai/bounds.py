"""Upper bounds of the tokens and the price of a question, before anything is sent, and forecasts of many of them.

Tokens of images follow the rules that OpenAI has published."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from models.openai.config import DECISIONS_LIMIT, OpenAIConfig
from models.openai.label_groups import LabelGroups
from models.openai.probe import Abilities
from models.oracle import Compare, Forecast, Label, Money, Question
from models.prices import Tariff, Tokens, bound, settled, tariff_of
from models.prompting import (
    REPLY_LIMIT,
    ImagePart,
    Message,
    compare_messages,
    label_messages,
    material_messages,
    most_frames,
    predicates,
)

# Tokens of the picture as a whole and of each 512-pixel tile, by how the model's name begins; longest name first.
TILED = {
    "gpt-4o-mini": (2833, 5667),
    "gpt-4o": (85, 170),
    "gpt-4.5": (85, 170),
    "o1": (75, 150),
    "o3": (75, 150),
    "computer-use": (65, 129),
}
PATCH = 32
TOKENS_PER_PATCH = 2.46  # the dearest model of those that count patches
WHOLE, TILE = 85, 170
_WORDS_AND_SPACE = str.maketrans("", "", string.ascii_letters + string.whitespace)


def image_tokens(model: str, side: int, detail: str) -> int:
    """A bound for a picture of at most `side` pixels each way. An unknown model gets the dearest usual rule."""
    name = model.rpartition("/")[2]
    rule = next((tokens for start, tokens in TILED.items() if name.startswith(start)), None)
    whole, tile = rule or (WHOLE, TILE)
    if detail == "low" and rule:
        return whole
    # The longer side is cut to 2048 pixels, the shorter one to 768.
    tiled = whole + tile * math.ceil(min(side, 2048) / 512) * math.ceil(min(side, 768) / 512)
    return tiled if rule else max(tiled, math.ceil(math.ceil(side / PATCH) ** 2 * TOKENS_PER_PATCH))


def text_tokens(text: str) -> int:
    """A bound: no tokenizer in use makes more than one token of a byte, nor of plain words more than one of two."""
    if not text.isascii():
        return len(text.encode("utf-8", "replace"))
    other = len(text.translate(_WORDS_AND_SPACE))
    return math.ceil(len(text) / 2) if other <= 0.2 * len(text) else len(text)


COMPARISON_TOKENS = 300  # of a reply with a name and a definition
LABELS_TOKENS, LABEL_TOKENS = 30, 12  # of a reply with labels, and of each label in it
THINKING_TOKENS = 4_000  # that a reasoning model may use beside
WRAPPING_TOKENS = 100  # roles, separators, and the schema where a provider counts it
REPAIR_TOKENS = REPLY_LIMIT + 100


@dataclass(frozen=True, slots=True)
class Bounds:
    config: OpenAIConfig
    abilities: Abilities
    chat: Tariff
    decisions: Tariff

    @classmethod
    def of(cls, config: OpenAIConfig, abilities: Abilities) -> Bounds:
        """Raises UnknownPrice where the model's price is known neither to the table nor to the user."""
        chat, decisions = (
            tariff_of(config.model, base_url=config.base_url, prices=config.price_table, endpoint=endpoint)
            for endpoint in ("chat", "decisions")
        )
        return cls(config, abilities, chat, decisions)

    @property
    def labels_by_decisions(self) -> bool:
        """Batches of requests go to chat only."""
        return self.abilities.decisions and not self.config.provider_batch

    def tariff(self, question: Question) -> Tariff:
        return self.decisions if isinstance(question, Label) and self.labels_by_decisions else self.chat

    def reply_tokens(self, questions: Sequence[Question]) -> int:
        """The limit that a request sets on its reply."""
        if self.config.max_output_tokens is not None:
            return self.config.max_output_tokens
        thinking = THINKING_TOKENS if self.abilities.reasoning else 0
        if isinstance(questions[0], Compare):
            return COMPARISON_TOKENS + thinking
        return LABELS_TOKENS + LABEL_TOKENS * len(questions) + thinking

    def request(self, questions: Sequence[Question]) -> Tokens:
        """At most what one request with these questions takes."""
        messages, more = self._messages(questions)
        given = WRAPPING_TOKENS + more + sum(self._message_tokens(message) for message in messages)
        return Tokens(given, self.reply_tokens(questions))

    def weight(self, question: Question) -> Money:
        """At most what one request with the question alone costs."""
        return bound(self.tariff(question), self.request([question]), batch=self._in_batch(question))

    def price(self, question: Question) -> Money:
        """At most what the question costs when it is asked as often as allowed, every other time with a repair."""
        asks = self.config.asks
        price = asks * bound(self.tariff(question), self.request([question]))
        if isinstance(question, Compare):
            price += asks // 2 * bound(self.chat, Tokens(REPAIR_TOKENS, 0))
        elif self._in_batch(question):
            # Labels whose line in a batch cannot be read are asked again at the full price.
            price += self.weight(question) - bound(self.chat, self.request([question]))
        return price

    def forecast(self, questions: Sequence[Question]) -> Forecast:
        groups: list[list[Question]] = [[question] for question in questions if isinstance(question, Compare)]
        labels = self.label_groups()
        for question in questions:
            if isinstance(question, Label):
                labels.add(question)
        groups.extend(list(group) for group in labels.release(partial=True))
        total, cost = Tokens(), 0
        for group in groups:
            most = self.request(group)
            usual = Tokens(math.ceil(most.input * 0.6), 60 if isinstance(group[0], Compare) else 6 * len(group))
            total += usual
            cost += settled(self.tariff(group[0]), usual, batch=self._in_batch(group[0]))
        return Forecast(len(groups), total.input, total.output, cost, sum(map(self.price, questions)))

    def label_groups(self) -> LabelGroups:
        most = DECISIONS_LIMIT if self.labels_by_decisions else None
        return LabelGroups(self.config.grouping, self.config.labels_per_request, most_per_example=most)

    def _in_batch(self, question: Question) -> bool:
        return self.config.provider_batch and isinstance(question, Label)

    def _messages(self, questions: Sequence[Question]) -> tuple[list[Message], int]:
        """What is sent, and the tokens of what travels beside it."""
        if isinstance(questions[0], Compare):
            return compare_messages(questions[0]), 0
        labels = [question for question in questions if isinstance(question, Label)]
        if not self.labels_by_decisions:
            return label_messages(labels), 0
        statements = predicates(labels)
        return material_messages(labels), sum(text_tokens(text + str(data)) for text, data in statements)

    def _message_tokens(self, message: Message) -> int:
        config = self.config
        pictures = sum(
            most_frames(part.example, config.frames) for part in message.parts if isinstance(part, ImagePart)
        )
        side = image_tokens(config.model, config.image_size, config.detail)
        return text_tokens(message.text) + pictures * side
