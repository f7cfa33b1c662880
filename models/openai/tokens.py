"""What a request to a server holds, how many tokens it takes and what it costs: at most, and usually."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.config import DECISIONS_LIMIT, OpenAIConfig
from twothirds.models.openai.grouping import Groups
from twothirds.models.openai.pace import Pace, units
from twothirds.models.oracle import MICRO, Compare, Label, Money, Question, Request, examples_of
from twothirds.models.prices import TOKENS_LIMIT, Tariff, Tokens, bound, settled, tariff_of
from twothirds.models.prompting import (
    REPLY_LIMIT,
    ImagePart,
    Message,
    Reading,
    SheetPart,
    arranged,
    label_form,
    material_messages,
    most_frames,
    most_picture_tokens,
    most_text_tokens,
    on_sheets,
    picture_tokens,
    predicates,
    sent_sizes,
    single_form,
    text_tokens,
    tokens_of,
)

Endpoint = Literal["chat", "decisions"]
LABELS_TOKENS, LABEL_TIMES = 30, 2  # of a reply with labels: so many, and so many times what is usual
WORD_TOKENS = 40  # of a reply that is one word, where nothing says that the word comes first
THINKING_TOKENS = 4_000  # that a reasoning model may use beside
WRAPPING_TOKENS = 100  # roles, separators, and the schema where a provider counts it
REPAIR_TOKENS = REPLY_LIMIT + 100
USUAL_THINKING = 600
PER_MESSAGE, PER_REQUEST = 3, 3  # tokens of roles and separators
REPEATED = 0.03  # of the replies usually cannot be used and are asked for again


@dataclass(frozen=True, slots=True)
class Form:
    """How questions are put in one request."""

    endpoint: Endpoint
    name: str  # of the schema
    messages: Sequence[Message]
    schema: dict[str, Any] | None  # None where the reply is one word, or a list of probabilities
    longest: int  # tokens: the limit that the request sets on its reply
    usual_reply: str
    paths: Sequence[tuple[str, ...]] = ()  # to labels in a reply
    predicates: Sequence[tuple[str, dict[str, str]]] = ()
    read: Callable[[str], Reading] | None = None  # of a question that shares no request

    @property
    def content(self) -> Hashable:
        """What another form differs in."""
        return tuple(self.messages), tuple((text, *data.values()) for text, data in self.predicates)


@dataclass(frozen=True, slots=True)
class Pricing:
    """What requests of a model with these abilities hold and cost."""

    config: OpenAIConfig
    abilities: Abilities
    tariffs: dict[Endpoint, Tariff]

    @classmethod
    def of(cls, config: OpenAIConfig, abilities: Abilities) -> Pricing:
        """Raises UnknownPrice where the model's price is known neither to the table nor to the user."""
        prices = {config.model: config.price} if config.price is not None else config.prices
        endpoints: tuple[Endpoint, ...] = ("chat", "decisions")
        of_model = {
            name: tariff_of(config.model, base_url=config.base_url, prices=prices, endpoint=name) for name in endpoints
        }
        return cls(config, abilities, of_model)

    @property
    def is_paid(self) -> bool:
        return bound(self.tariffs["chat"], Tokens(MICRO, MICRO)) > 0

    @property
    def may_ask_one_by_one(self) -> bool:
        """Whether labels have requests of their own if the server tells the probabilities of the next word."""
        if self.config.provider_batch or self.config.labels_per_request is not None:
            return False
        return self.config.grouping == "none" or (self.config.grouping == "auto" and not self.is_paid)

    @property
    def labels_by_decisions(self) -> bool:
        """Batches of requests go to chat only."""
        return self.abilities.decisions and not self.config.provider_batch

    def in_batch(self, question: Question) -> bool:
        return self.config.provider_batch and isinstance(question, Label)

    def groups(self, pace: Pace) -> Groups:
        """Which labels share a request: no more than the server ends in time. Where requests cost nothing each label is
        the next word of a request of its own, the most accurate way."""
        config, decisions = self.config, self.labels_by_decisions
        one_by_one = self.abilities.next_word and not decisions and self.may_ask_one_by_one
        return Groups(
            "none" if one_by_one else config.grouping,
            config.most_labels,
            DECISIONS_LIMIT if decisions else config.labels_per_request,
            matrix=not decisions,
            now=lambda: pace.most_labels,
        )

    def requests(self, questions: Sequence[Question], pace: Pace) -> Iterator[Request]:
        """Single questions first; each request is made when it is wanted."""
        labels = list[Label]()
        for question in questions:
            if isinstance(question, Label):
                labels.append(question)
            else:
                yield self.request([question], pace)
        for group in self.groups(pace).of(labels):
            yield self.request(arranged(group), pace)

    def request(self, questions: Sequence[Question], pace: Pace) -> Request:
        form, batch = self.form(questions), self.in_batch(questions[0])
        most, usual, tariff = self.most(form), self.usual(form), self.tariffs[form.endpoint]
        written, at_most = pace.rate * pace.width, bound(tariff, most, batch=batch)
        return Request(
            tuple(questions),
            bound=at_most,
            limit=self._limit(form, questions, most),
            usual=min(ceil(settled(tariff, usual, batch=batch) * (1 + REPEATED)), at_most),
            seconds=units(usual) / written if written else 0.0,
        )

    def limit(self, questions: Sequence[Question]) -> Money:
        """At most what these cost however often they are asked."""
        form = self.form(questions)
        return self._limit(form, questions, self.most(form))

    def _limit(self, form: Form, questions: Sequence[Question], most: Tokens) -> Money:
        """Every ask may be of each label alone, and every other one of a single question shows the last reply."""
        tariff, asks = self.tariffs[form.endpoint], self.config.asks
        once = bound(tariff, most)
        if not isinstance(questions[0], Label):
            return asks * once + asks // 2 * bound(tariff, Tokens(REPAIR_TOKENS))
        count, examples = len(questions), {example for question in questions for example in examples_of(question)}
        shown = sum(
            most_text_tokens(example.text or "") + self._most_pictures(ImagePart(example)) for example in examples
        )
        alone = count * max(most.input - shown, 0) + count // len(examples) * shown
        return asks * max(once, bound(tariff, Tokens(alone, count * self._word_tokens)))

    def form(self, questions: Sequence[Question]) -> Form:
        """Labels must be `arranged`, and such as one request can carry."""
        config, first = self.config, questions[0]
        if not isinstance(first, Label):
            single = single_form(first, config.brief)
            messages = single.messages
            if config.draws_sheets and isinstance(first, Compare):
                messages = on_sheets(messages, config.model, config.detail, config.image_size, config.frames)
            longest = self._longest(single.most_tokens)
            return Form("chat", single.name, messages, single.schema, longest, single.usual_reply, read=single.read)
        labels = [question for question in questions if isinstance(question, Label)]
        if self.labels_by_decisions:
            material = config.brief.added_to(material_messages(labels))
            longest = self._longest(LABELS_TOKENS + WORD_TOKENS * len(labels))
            return Form("decisions", "", material, None, longest, "", predicates=predicates(labels))
        form = label_form(labels, config.brief, listing=config.label_reply)
        reply = form.usual_reply
        if len(labels) == 1:
            return Form("chat", "labels", form.messages, form.schema, self._word_tokens, reply, form.paths)
        longest = self._longest(LABELS_TOKENS + LABEL_TIMES * text_tokens(reply))
        return Form("chat", "labels", form.messages, form.schema, longest, reply, form.paths)

    def _longest(self, tokens: int) -> int:
        thinking = THINKING_TOKENS if self.abilities.reasoning else 0
        return self.config.max_output_tokens or tokens + thinking

    @property
    def _word_tokens(self) -> int:
        """Of a reply that is one word."""
        next_word = self.abilities.next_word and self.config.max_output_tokens is None
        return 1 if next_word else self._longest(WORD_TOKENS)

    def most(self, form: Form) -> Tokens:
        """At most what the request takes."""
        given = sum(most_text_tokens(message.text) for message in form.messages)
        given += sum(most_text_tokens(text + str(data)) for text, data in form.predicates)
        pictures = sum(
            self._most_pictures(part)
            for message in form.messages
            for part in message.parts
            if not isinstance(part, str)
        )
        return Tokens(given + pictures + WRAPPING_TOKENS, form.longest)

    def _most_pictures(self, part: ImagePart | SheetPart) -> int:
        config = self.config
        if isinstance(part, SheetPart):
            return tokens_of([part], config.model, config.detail)
        if part.example.image is None:
            return 0
        per_picture = most_picture_tokens(config.model, config.image_size, config.detail)
        return most_frames(part.example, config.frames) * per_picture

    def usual(self, form: Form) -> Tokens:
        """What the request is likely to take."""
        given = PER_REQUEST + sum(text_tokens(text + str(data)) for text, data in form.predicates)
        if form.schema is not None and self.abilities.format == "json_schema":
            given += text_tokens(json.dumps(form.schema, separators=(",", ":")))
        for message in form.messages:
            given += PER_MESSAGE
            given += sum(text_tokens(part) if isinstance(part, str) else self._pictures(part) for part in message.parts)
        thinking = USUAL_THINKING if self.abilities.reasoning and form.endpoint == "chat" else 0
        return Tokens(given, text_tokens(form.usual_reply) + thinking)

    def _pictures(self, part: ImagePart | SheetPart) -> int:
        config = self.config
        if isinstance(part, SheetPart):
            return tokens_of([part], config.model, config.detail)
        sizes = sent_sizes(part.example, config.image_size, config.frames)
        return sum(picture_tokens(config.model, width, height, config.detail) for width, height in sizes)

    def most_cost(self, endpoint: Endpoint, tokens: Tokens, scale: float, *, batch: bool = False) -> Money:
        """At most what so many tokens cost at a provider that may charge `scale` times as much."""
        tariff = self.tariffs[endpoint]
        most = bound(tariff, tokens, batch=batch)
        if scale == 1.0:
            return most
        return min(ceil(most * scale), bound(tariff, Tokens(TOKENS_LIMIT, TOKENS_LIMIT), batch=batch))
