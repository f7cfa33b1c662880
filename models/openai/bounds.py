"""Upper bounds of the tokens and the price of a question, before anything is sent, and forecasts of many of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean
from typing import Any

from twothirds.discovery import Kind
from twothirds.models.cached import reserved_at_once
from twothirds.models.openai.config import DECISIONS_LIMIT, OpenAIConfig
from twothirds.models.openai.label_groups import ROW_FEATURES, LabelBlocks, planned
from twothirds.models.openai.pace import most_labels, units
from twothirds.models.openai.probe import Abilities
from twothirds.models.oracle import (
    MICRO,
    NOTHING_MEASURED,
    Compare,
    Forecast,
    Label,
    Measured,
    Money,
    PlannedRequest,
    Question,
    Single,
)
from twothirds.models.prices import TOKENS_LIMIT, Tariff, Tokens, bound, settled, shares, tariff_of
from twothirds.models.prompting import (
    REPLY_LIMIT,
    ImagePart,
    LabelForm,
    Message,
    PromptCache,
    SheetPart,
    SingleForm,
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
from twothirds.sources import Example

LABELS_TOKENS, LABEL_TIMES = 30, 2  # of a reply with labels: so many, and so many times what is usual
WORD_TOKENS = 40  # of a reply that is one word, where nothing says that the word comes first
THINKING_TOKENS = 4_000  # that a reasoning model may use beside
WRAPPING_TOKENS = 100  # roles, separators, and the schema where a provider counts it
REPAIR_TOKENS = REPLY_LIMIT + 100

# Of a forecast. What is usual, where no earlier answer tells it:
USUAL_THINKING = 600
PER_MESSAGE, PER_REQUEST = 3, 3  # tokens of roles and separators
REPEATED = 0.03  # of the replies cannot be used and are asked for again
# And at most, for a server that does its work:
MOST_REPEATED = 0.5
MORE_TOKENS = 1.5  # times the usual, of a text

FEWEST_MEASURED, MOST_MEASURED = 5, 100  # answers of a kind that say what is usual
_REQUESTS, _INPUT, _OUTPUT = range(3)  # of a usage that is kept
PRICED = 10  # requests whose bound is worked out, to know what is reserved for those in flight
Stored = Mapping[str, Any]


def may_ask_one_by_one(config: OpenAIConfig, tariff: Tariff) -> bool:
    """Whether labels have requests of their own if the server tells the probabilities of the next word."""
    if config.provider_batch or config.labels_per_request is not None:
        return False
    return config.grouping == "none" or (config.grouping == "auto" and not bound(tariff, Tokens(MICRO, MICRO)))


@dataclass(frozen=True, slots=True)
class Bounds:
    config: OpenAIConfig
    abilities: Abilities
    chat: Tariff
    decisions: Tariff
    scale: float = 1.0  # above 1 where the provider has charged more than its bounds

    @classmethod
    def of(cls, config: OpenAIConfig, abilities: Abilities) -> Bounds:
        """Raises UnknownPrice where the model's price is known neither to the table nor to the user."""
        prices = {config.model: config.price} if config.price is not None else config.prices
        chat, decisions = (
            tariff_of(config.model, base_url=config.base_url, prices=prices, endpoint=endpoint)
            for endpoint in ("chat", "decisions")
        )
        return cls(config, abilities, chat, decisions)

    @property
    def labels_by_decisions(self) -> bool:
        """Batches of requests go to chat only."""
        return self.abilities.decisions and not self.config.provider_batch

    @property
    def labels_one_by_one(self) -> bool:
        """Each label is the next word of a request of its own: the most accurate way, where requests cost nothing."""
        return self.abilities.next_word and not self.labels_by_decisions and may_ask_one_by_one(self.config, self.chat)

    def tariff(self, question: Question) -> Tariff:
        return self.decisions if isinstance(question, Label) and self.labels_by_decisions else self.chat

    def reply_tokens(self, questions: Sequence[Question]) -> int:
        """The limit that a request sets on its reply."""
        if self.config.max_output_tokens is not None:
            return self.config.max_output_tokens
        thinking = THINKING_TOKENS if self.abilities.reasoning else 0
        if not isinstance(questions[0], Label):
            return self.single(questions[0]).most_tokens + thinking
        if len(questions) == 1:
            return 1 if self.abilities.next_word else WORD_TOKENS + thinking
        return LABELS_TOKENS + LABEL_TIMES * text_tokens(self._form(questions).usual_reply) + thinking

    def request(self, questions: Sequence[Question]) -> Tokens:
        """At most what one request with these questions takes."""
        messages, beside = self._messages(questions)
        given = sum(self._message_tokens(message) for message in messages) + sum(map(most_text_tokens, beside))
        given += WRAPPING_TOKENS
        return Tokens(given, self.reply_tokens(questions))

    def most(self, tariff: Tariff, tokens: Tokens, *, batch: bool = False) -> Money:
        """At most what a request with so many tokens costs at this provider."""
        most = bound(tariff, tokens, batch=batch)
        if self.scale == 1.0:
            return most
        return min(ceil(most * self.scale), bound(tariff, Tokens(TOKENS_LIMIT, TOKENS_LIMIT), batch=batch))

    def weight(self, question: Question) -> Money:
        """At most what one request with the question alone costs."""
        return self.most(self.tariff(question), self.request([question]), batch=self._in_batch(question))

    def price(self, question: Question) -> Money:
        """At most what the question costs when it is asked as often as allowed, every other time with a repair."""
        asks = self.config.asks
        price = asks * self.most(self.tariff(question), self.request([question]))
        if not isinstance(question, Label):
            price += asks // 2 * self.most(self.chat, Tokens(REPAIR_TOKENS, 0))
        elif self._in_batch(question):
            # Labels whose line in a batch cannot be read are asked again at the full price.
            price += self.weight(question) - self.most(self.chat, self.request([question]))
        return price

    def requests(
        self, questions: Sequence[Question], *, more: bool, most_labels: int | None = None
    ) -> list[PlannedRequest]:
        """Those in which the questions are sent, single ones first; with `more` to come labels may be left out."""
        groups = self._groups(questions, more=more, most_labels=most_labels)
        return [PlannedRequest(tuple(group), self.split(group)) for group in groups]

    def split(self, group: Sequence[Question]) -> tuple[Money, ...]:
        """At most what one request with these questions costs, divided among them."""
        most = self.most(self.tariff(group[0]), self.request(group), batch=self._in_batch(group[0]))
        return tuple(shares(most, [self.weight(question) for question in group]))

    def forecast(self, questions: Sequence[Question], measured: Measured, width: int) -> Forecast:
        """About what these take when they are asked together, `width` of them at a time."""
        total, cost, most, work, cache = Tokens(), 0.0, 0.0, 0.0, PromptCache()
        groups = list(self._all_groups(questions, width))
        for group in groups:
            usual, largest = self._usual(group, measured, cache)
            tariff, batch = self.tariff(group[0]), self._in_batch(group[0])
            total += usual
            work += units(usual)
            cost += settled(tariff, usual, batch=batch) * (1 + REPEATED)
            most += bound(tariff, largest, batch=batch) * (1 + MOST_REPEATED)
        priced = map(self.split, groups[:: max(len(groups) // PRICED, 1)])
        reserved = reserved_at_once(width) * max(map(max, priced), default=0)
        written = self.abilities.rate * self.abilities.width
        seconds = round(work / written) if written else 0
        return Forecast(len(groups), total.input, total.output, round(cost), round(most), reserved, seconds)

    def measured(self, stored: Sequence[tuple[Stored, Stored]], examples: Iterable[Example]) -> Measured:
        """By questions and answers that are kept. One comparison is one request, and can be put together again."""
        comparisons = [(question, answer) for question, answer in stored if "without" in question]
        labels = [answer["usage"][_OUTPUT] for question, answer in stored if question["kind"] == Kind.LABEL]
        replies = [answer["usage"][_OUTPUT] for _, answer in comparisons if answer["usage"][_REQUESTS] == 1]
        by_digest = {example.digest: example for example in examples}
        billed = usual = 0
        for question, answer in comparisons[-MOST_MEASURED:]:
            shown = [by_digest.get(digest) for digest in (*question["examples"], *question["without"])]
            found = tuple(example for example in shown if example is not None)
            if answer["usage"][_REQUESTS] == 1 and len(found) == len(shown):
                middle = len(question["examples"])
                asked = Compare(
                    kind=Kind(question["kind"]),
                    examples=found[:middle],
                    without=found[middle:],
                    known=tuple(question["known"]),
                    voter=question["voter"],
                )
                billed += answer["usage"][_INPUT]
                usual += self._usual([asked], NOTHING_MEASURED, PromptCache())[0].input
        return Measured(
            len(stored),
            billed / usual if billed and usual else 1.0,
            fmean(replies) if len(replies) >= FEWEST_MEASURED else None,
            fmean(labels) if len(labels) >= FEWEST_MEASURED else None,
        )

    def _all_groups(self, questions: Sequence[Question], width: int) -> Iterator[Sequence[Question]]:
        """As they are sent when `width` of them are claimed at a time."""
        waiting, most = list(questions), most_labels(self.abilities.rate)
        while waiting:
            wanted, rest = waiting[:width], waiting[width:]
            groups = self._groups(wanted, more=bool(rest), most_labels=most)
            yield from groups
            sent = {id(question) for group in groups for question in group}
            waiting = [question for question in wanted if id(question) not in sent] + rest

    def _groups(
        self, questions: Sequence[Question], *, more: bool, most_labels: int | None = None
    ) -> list[Sequence[Question]]:
        groups = list[Sequence[Question]]([question] for question in questions if not isinstance(question, Label))
        labels = [question for question in questions if isinstance(question, Label)]
        return groups + [arranged(group) for group in planned(self.label_groups(most_labels), labels, more=more)]

    def _usual(self, group: Sequence[Question], measured: Measured, cache: PromptCache) -> tuple[Tokens, Tokens]:
        """The tokens of one request: what is usual, and what would be very many."""
        pieces = list(self._pieces(group))
        pictures = sum(tokens for piece, tokens in pieces if not isinstance(piece, str))
        text = PER_REQUEST + sum(tokens for piece, tokens in pieces if isinstance(piece, str))
        given = round((pictures + text) * measured.input_ratio)
        cached = min(round(cache.cached(pieces) * measured.input_ratio), given)
        many = round((pictures + text * MORE_TOKENS) * measured.input_ratio)
        return Tokens(given, self._usual_reply(group, measured), cached), Tokens(many, self.reply_tokens(group))

    def _usual_reply(self, group: Sequence[Question], measured: Measured) -> int:
        thinking = USUAL_THINKING if self.abilities.reasoning else 0
        if not isinstance(group[0], Label):
            usual = measured.comparison_output if isinstance(group[0], Compare) else None
            return round(usual or text_tokens(self.single(group[0]).usual_reply) + thinking)
        if self.labels_by_decisions:
            return round((measured.label_output or 0) * len(group))
        if measured.label_output is not None:
            return round(measured.label_output * len(group))
        return text_tokens(self._form(group).usual_reply) + thinking

    def _pieces(self, group: Sequence[Question]) -> Iterator[tuple[Hashable, int]]:
        """What is sent, piece by piece, each with its usual tokens; a text is a string, a picture its digest."""
        messages, beside = self._messages(group)
        if self.abilities.format == "json_schema" and not beside:
            first = group[0]
            form = self._form(group) if isinstance(first, Label) else self.single(first)
            if form.schema is not None:
                yield (text := json.dumps(form.schema, separators=(",", ":"))), text_tokens(text)
        for message in messages:
            yield message.role, PER_MESSAGE
            for part in message.parts:
                if isinstance(part, str):
                    yield from ((line, text_tokens(line)) for line in part.splitlines(keepends=True))
                elif isinstance(part, ImagePart):
                    yield (part.example.digest,), self._picture_tokens(part)
                else:
                    digests = tuple(example.digest for example in part.examples)
                    yield digests, tokens_of([part], self.config.model, self.config.detail)
        yield from ((text, text_tokens(text)) for text in beside)

    def _picture_tokens(self, picture: ImagePart) -> int:
        config = self.config
        sizes = sent_sizes(picture.example, config.image_size, config.frames)
        return sum(picture_tokens(config.model, width, height, config.detail) for width, height in sizes)

    def label_groups(self, most: int | None = None) -> LabelBlocks:
        """Which labels share a request: no more than `most`, where a server is slow."""
        config, decisions = self.config, self.labels_by_decisions
        row = DECISIONS_LIMIT if decisions else config.labels_per_request
        grouping = "none" if self.labels_one_by_one else config.grouping
        if most is None:
            return LabelBlocks(grouping, config.most_labels, row=row, matrix=not decisions)
        size = min(most, config.most_labels)
        return LabelBlocks(grouping, size, row=min(row or ROW_FEATURES, size), matrix=not decisions)

    def single(self, question: Single) -> SingleForm:
        """How a question that shares no request is asked of this model."""
        config, form = self.config, single_form(question, self.config.brief)
        if not (config.draws_sheets and isinstance(question, Compare)):
            return form
        messages = on_sheets(form.messages, config.model, config.detail, config.image_size, config.frames)
        return replace(form, messages=messages)

    def _form(self, questions: Sequence[Question]) -> LabelForm:
        labels = [question for question in questions if isinstance(question, Label)]
        return label_form(labels, self.config.brief, listing=self.config.label_reply)

    def _in_batch(self, question: Question) -> bool:
        return self.config.provider_batch and isinstance(question, Label)

    def _messages(self, questions: Sequence[Question]) -> tuple[list[Message], list[str]]:
        """What is sent, and the texts that travel beside it."""
        if not isinstance(questions[0], Label):
            return self.single(questions[0]).messages, []
        labels = [question for question in questions if isinstance(question, Label)]
        if not self.labels_by_decisions:
            return self._form(labels).messages, []
        material = self.config.brief.added_to(material_messages(labels))
        return material, [text + str(data) for text, data in predicates(labels)]

    def _message_tokens(self, message: Message) -> int:
        config = self.config
        pictures = sum(
            most_frames(part.example, config.frames) for part in message.parts if isinstance(part, ImagePart)
        )
        per_picture = most_picture_tokens(config.model, config.image_size, config.detail)
        sheets = [part for part in message.parts if isinstance(part, SheetPart)]
        on_sheet = tokens_of(sheets, config.model, config.detail)
        return most_text_tokens(message.text) + pictures * per_picture + on_sheet
