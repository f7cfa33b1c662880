"""An oracle that is a transformers model on this machine: comparisons by generation, labels by P(yes)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from twothirds.models.local.chat_model import ChatModel, ContextOverflow, Generated, Prompt, device_and_dtype, explained
from twothirds.models.local.files import find_model
from twothirds.models.local.yes_no import YesNo, YesNoReader
from twothirds.models.oracle import (
    MICRO,
    Answer,
    Choose,
    Label,
    Meter,
    Money,
    OracleError,
    OracleIdentity,
    OracleUnavailable,
    Question,
    Reply,
    Request,
    Single,
    Traits,
    Unlike,
    Usage,
    Verdict,
    changes_raised,
    in_requests,
    replied,
)
from twothirds.models.prompting import (
    NAMED_TOKENS,
    SINGLE_VERSION,
    Brief,
    Message,
    SingleForm,
    found_in,
    label_form,
    repair_messages,
    single_form,
)
from twothirds.sources import DatasetError, Example

YES_FROM = 0.5
MEASURED_MARGIN = 3.0  # a question asked alone takes longer than in a batch; a busy machine makes it longer still
Asked = TypeVar("Asked", Single, Label)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalVlmConfig:
    model: str  # a folder made by save_pretrained, or a hub id
    revision: Annotated[str | None, "of a model on the hub"] = None
    device: Annotated[str, "cpu, cuda, mps or auto"] = "auto"
    dtype: Annotated[str, "number format of the weights, e.g. bfloat16, or auto"] = "auto"
    batch: Annotated[int, "questions at a time"] = 16
    longest_side: Annotated[int, "pixels of the longer side of a picture; larger ones are scaled down"] = 768
    max_new_tokens: Annotated[int, "tokens of the answer to a comparison"] = 256
    least_mass: Annotated[float, "probability on yes and no together below which a label is unreadable"] = 0.25
    yes_from: Annotated[float, "probability from which a label is yes"] = YES_FROM
    feature_first: Annotated[bool, "put the feature first: faster where one feature meets many examples"] = False
    about: Annotated[str, "what the data is and what the features are for, as --about"] = ""
    avoid: Annotated[str, "kinds of features that are not wanted, as --avoid"] = ""
    share_prefix: Annotated[bool, "compute what prompts have in common once"] = True
    price_per_hour: Annotated[float, "USD for an hour of this machine"] = 0.0
    seconds_per_label: Annotated[float | None, "seconds at most, for the price (default: measured)"] = None
    seconds_per_comparison: Annotated[float | None, "seconds at most, for the price (default: measured)"] = None

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("longest_side", 16), ("max_new_tokens", 1), ("price_per_hour", 0)):
            if getattr(self, name) < least:
                raise OracleError(f"vlm: {name}={getattr(self, name)} is too small: give at least {least}")
        if not 0 <= self.least_mass <= 1:
            raise OracleError(f"vlm: least_mass={self.least_mass} is not a probability: give a value from 0 to 1")
        if not 0 < self.yes_from < 1:
            raise OracleError(f"vlm: yes_from={self.yes_from} is no threshold: give a number between 0 and 1")


class LocalVlmOracle:
    """Loads its model when it is first asked. Safe to use from several threads, which then take turns."""

    def __init__(self, config: LocalVlmConfig) -> None:
        self.config = config
        self._brief = Brief(config.about, config.avoid)
        self._files = find_model(config.model, config.revision)
        self._device, self._dtype = device_and_dtype(config.device, config.dtype)
        self.identity = OracleIdentity(
            kind="vlm",
            model=self._files.name,
            parameters=(
                ("version", self._files.version),
                ("dtype", self._dtype),
                ("longest_side", config.longest_side),
                ("max_new_tokens", config.max_new_tokens),
                ("least_mass", config.least_mass),
                ("feature_first", config.feature_first),
                *([] if config.yes_from == YES_FROM else [("yes_from", config.yes_from)]),
                *self._brief.parameters,
            ),
            prompts=SINGLE_VERSION,
        )
        self._turn = threading.Lock()
        self._loaded: tuple[ChatModel, YesNoReader] | None = None
        self._bounds: dict[type, Money] = {}

    @property
    def traits(self) -> Traits:
        return Traits(profile="paid" if self.config.price_per_hour else "local")

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002 (the first question loads the model)
        return Unlike()

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        for request in in_requests(questions, most=self.config.batch):
            bound = sum(map(self._bound, request.questions))
            yield replace(request, bound=bound, limit=bound, usual=bound)

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for request in requests:
            meter.leaving(request, request.bound)
            try:
                with self._turn:
                    answers = self._answered(list(request.questions))
            except OracleUnavailable:
                yield Reply(request)  # what a model of one's own fails to answer has cost nothing
                raise
            yield replied(request, map(self._charged, answers))

    def _bound(self, question: Question) -> Money:
        """Seconds at most, as configured, or else as measured on the first question of each kind, times the price.

        A question that takes longer than that costs no more."""
        if not self.config.price_per_hour:
            return 0
        kind = type(question)
        if kind not in self._bounds:
            short = kind in (Label, Choose)
            seconds = self.config.seconds_per_label if short else self.config.seconds_per_comparison
            if seconds is None:
                with self._turn:
                    self._model()
                    seconds = MEASURED_MARGIN * self._answered([question])[0].seconds
            self._bounds[kind] = self._price(seconds)
        return self._bounds[kind]

    def _price(self, seconds: float) -> Money:
        return round(seconds * self.config.price_per_hour * MICRO / 3600)

    def _charged(self, answer: Answer) -> Answer:
        cost = self._price(answer.seconds)
        return answer.with_cost(min(cost, self._bounds.get(type(answer.question), cost)))

    def _model(self) -> tuple[ChatModel, YesNoReader]:
        if self._loaded is None:
            side = self.config.longest_side
            model = ChatModel(self._files, device=self._device, dtype=self._dtype, longest_side=side)
            self._loaded = model, YesNoReader(model, share_prefix=self.config.share_prefix)
        return self._loaded

    def _answered(self, questions: list[Question]) -> list[Answer]:
        labels = [question for question in questions if isinstance(question, Label)]
        singles = [question for question in questions if not isinstance(question, Label)]
        self._model()  # loading is not part of any question's time
        return [
            *(self._timed(labels, self._label) if labels else []),
            *(self._timed(singles, self._ask_singles) if singles else []),
        ]

    def _timed(
        self, questions: list[Asked], answer: Callable[[list[Asked], list[Prompt]], list[Answer]]
    ) -> list[Answer]:
        """Each answer takes an equal share of the batch's time."""
        started = time.perf_counter()
        with explained(f"model {self._files.name!r} failed"):
            answers = self._in_parts(questions, answer)
        share = (time.perf_counter() - started) / len(questions)
        return [replace(answer, seconds=share) for answer in answers]

    def _in_parts(
        self, questions: list[Asked], answer: Callable[[list[Asked], list[Prompt]], list[Answer]]
    ) -> list[Answer]:
        """In one batch; without what the model cannot take, and in halves where the memory is too small for it."""
        import torch

        refused: list[Answer] = []
        ready: list[tuple[Asked, Prompt]] = []
        for question in questions:
            try:
                with changes_raised():
                    ready.append((question, self._prompt(question)))
            except DatasetError as problem:
                refused.append(self._refusal(question, str(problem)))
        while ready:
            try:
                return [*refused, *answer([question for question, _ in ready], [prompt for _, prompt in ready])]
            except ContextOverflow as overflow:
                refused += [self._too_long(ready[place][0], tokens) for place, tokens in overflow.lengths.items()]
                ready = [pair for place, pair in enumerate(ready) if place not in overflow.lengths]
            except torch.OutOfMemoryError:
                if len(ready) == 1:
                    raise OracleUnavailable(
                        f"model {self._files.name!r} runs out of memory on one question: "
                        "choose a smaller model or dtype, or a smaller longest_side"
                    ) from None
                left, middle = [question for question, _ in ready], len(ready) // 2
                return refused + self._in_parts(left[:middle], answer) + self._in_parts(left[middle:], answer)
        return refused

    def _prompt(self, question: Question) -> Prompt:
        model, _ = self._model()
        if not isinstance(question, Label):
            return model.prompt(single_form(question, self._brief).messages)
        return model.prompt(label_form([question], self._brief, feature_first=self.config.feature_first).messages)

    def _label(self, labels: list[Label], ready: list[Prompt]) -> list[Answer]:
        _, reader = self._model()
        # Where the feature comes first no prompts share a prefix; otherwise those about one example do.
        first = self.config.feature_first
        subjects = [place if first or label.exemplars else label.example.digest for place, label in enumerate(labels)]
        readings = reader.read(ready, subjects)
        return [self._vote(label, reading) for label, reading in zip(labels, readings, strict=True)]

    def _vote(self, label: Label, reading: YesNo) -> Answer:
        raw = f"P(yes)={reading.probability:.6f} mass={reading.mass:.6f}"
        usage = Usage(1, reading.tokens, 1, reading.shared)
        answer = Answer(label, Verdict.YES, self._files.name, usage=usage, raw=raw)
        if reading.mass < self.config.least_mass:
            note = f"yes and no together have a probability of {reading.mass:.3g} only"
            return replace(answer, verdict=Verdict.UNREADABLE, note=note)
        verdict = Verdict.YES if reading.probability >= self.config.yes_from else Verdict.NO
        return replace(answer, verdict=verdict, probability=reading.probability)

    def _ask_singles(self, singles: list[Single], ready: list[Prompt]) -> list[Answer]:
        """What cannot be read is asked once more, with what was wrong."""
        model, _ = self._model()
        forms = [single_form(question, self._brief) for question in singles]
        longest = self.config.max_new_tokens * max(-(-form.most_tokens // NAMED_TOKENS) for form in forms)
        replies = [[reply] for reply in model.generate(ready, longest)]
        answers = list(map(self._reading, singles, forms, replies))
        again = {
            place: repair_messages(forms[place].messages, answer.raw, answer.note)
            for place, answer in enumerate(answers)
            if answer.verdict is Verdict.UNREADABLE
        }
        for place, second in self._second_replies(again, longest).items():
            answers[place] = self._reading(singles[place], forms[place], [*replies[place], second])
        return answers

    def _second_replies(self, again: dict[int, list[Message]], longest: int) -> dict[int, Generated]:
        """Without those whose question would be too long with the first reply in it."""
        model, _ = self._model()
        ready = {place: model.prompt(messages) for place, messages in again.items()}
        while ready:
            try:
                return dict(zip(ready, model.generate([*ready.values()], longest), strict=True))
            except ContextOverflow as overflow:
                long = {place for row, place in enumerate(ready) if row in overflow.lengths}
                ready = {place: prompt for place, prompt in ready.items() if place not in long}
        return {}

    def _reading(self, question: Single, form: SingleForm, replies: list[Generated]) -> Answer:
        readings = [form.read(reply.text) for reply in replies]
        usage = Usage(
            requests=len(replies),
            input_tokens=sum(reply.input_tokens for reply in replies),
            output_tokens=sum(reply.output_tokens for reply in replies),
        )
        raw = "\n".join(reply.text for reply in replies)
        return Answer(question, readings[-1].verdict, self._files.name, usage=usage, raw=raw, **found_in(readings))

    def _too_long(self, question: Question, tokens: int) -> Answer:
        model, _ = self._model()
        return self._refusal(
            question,
            f"its {tokens} tokens and room for an answer exceed the model's {model.context}: shorten the texts, "
            "choose a smaller longest_side, or a model that reads more",
        )

    def _refusal(self, question: Question, why: str) -> Answer:
        return Answer(question, Verdict.REFUSED, self._files.name, note=why)
