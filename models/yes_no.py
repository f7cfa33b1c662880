"""P(yes) from a chat model's next token, for many prompts at once.

Prompts are padded on the right: the model looks only to the left, so nobody sees the padding and every token keeps the
position it has alone. What the prompts of a batch begin with is computed once and its keys and values are reused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models.chat_model import ChatModel, ContextOverflow, Prompt
from models.oracle import OracleUnavailable

if TYPE_CHECKING:
    from torch import Tensor

YES, NO = ("yes", "Yes", "YES"), ("no", "No", "NO")
WORTH_SHARING = 16  # tokens: below that a second pass costs more than it saves
# How far sharing may move a probability before the model is taken to be one that does not allow it.
TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}


@dataclass(frozen=True, slots=True)
class YesNo:
    probability: float  # of yes, given that the next word is yes or no
    mass: float  # probability that the next word is yes or no
    tokens: int  # of the prompt
    shared: int = 0  # of these, computed once for several prompts of the batch


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows whose next-token logits are wanted, padded on the right, perhaps behind tokens computed before."""

    inputs: dict[str, Any]
    lengths: list[int]  # of each row, without padding and without what was computed before
    before: int = 0


class YesNoReader:
    def __init__(self, model: ChatModel, *, share_prefix: bool = True) -> None:
        self._model = model
        self._share_prefix = share_prefix
        self._allowed: dict[tuple[bool, bool], bool] = {}  # which ways of sharing this model allows, by trial
        self._yes, self._no = yes_and_no_ids(model)

    def read(self, prompts: Sequence[Prompt], about: Sequence[Hashable]) -> list[YesNo]:
        """One reading per prompt. Prompts with the same `about` show the same pictures and begin alike.

        Raises ContextOverflow with the places of the prompts that are too long."""
        readings: dict[int, YesNo] = {}
        for places, by_example in self._groups(prompts, about):
            group = [prompts[place] for place in places]
            try:
                found = self._read_group(group, [about[place] for place in places] if by_example else None)
            except ContextOverflow as overflow:
                raise ContextOverflow({places[row]: tokens for row, tokens in overflow.lengths.items()}) from None
            readings |= zip(places, found, strict=True)
        return [readings[place] for place in range(len(prompts))]

    def _groups(self, prompts: Sequence[Prompt], about: Sequence[Hashable]) -> list[tuple[list[int], bool]]:
        """Places of prompts to be read together, and whether by example: such groups share beginnings of one length."""
        subjects: dict[Hashable, list[int]] = {}
        for place, subject in enumerate(about):
            subjects.setdefault(subject, []).append(place)
        groups: dict[tuple[int, Hashable], list[int]] = {}
        for places in subjects.values():
            sizes = tuple(picture.size for picture in prompts[places[0]].pictures)
            common = 0
            if self._share_prefix and len(places) > 1:
                common = _common([self._model.token_ids(prompts[place]) for place in places])
            key = (common, sizes) if common >= WORTH_SHARING else (0, bool(sizes))
            groups.setdefault(key, []).extend(places)
        return [(places, common > 0) for (common, _), places in groups.items()]

    def _read_group(self, prompts: list[Prompt], about: list[Hashable] | None) -> list[YesNo]:
        """`about` is given where the prompts of a subject share its example."""
        way = (about is not None, bool(prompts[0].pictures))
        if len(prompts) == 1 or not self._share_prefix or not self._allowed.get(way, True):
            return self._plain(prompts)
        if way in self._allowed:
            return self._sharing(prompts, about) or self._plain(prompts)
        plain = self._plain(prompts)
        try:
            shared = self._sharing(prompts, about)
            if shared:
                self._allowed[way] = self._agree(plain, shared)
        except Exception:  # whatever a model raises here, it says that it does not allow this
            self._allowed[way] = False
        return plain

    def _agree(self, plain: list[YesNo], shared: list[YesNo]) -> bool:
        tolerance = TOLERANCE.get(str(self._model.model.dtype).removeprefix("torch."), 0.0)
        return all(
            abs(one.probability - other.probability) <= tolerance and abs(one.mass - other.mass) <= tolerance
            for one, other in zip(plain, shared, strict=True)
        )

    def _plain(self, prompts: list[Prompt]) -> list[YesNo]:
        inputs = self._model.encode(prompts, "right")
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        self._model.check_room(lengths)
        return self._readings(_Batch(inputs, lengths))

    def _sharing(self, prompts: list[Prompt], about: list[Hashable] | None) -> list[YesNo]:
        """Empty where the prompts have too little in common."""
        batch = self._behind_examples(prompts, about) if about else self._behind_instructions(prompts)
        return self._readings(batch) if batch else []

    def _behind_examples(self, prompts: list[Prompt], about: list[Hashable]) -> _Batch | None:
        """Each example is looked at once; its prompts differ only in what follows it."""
        import torch

        heads = [about.index(subject) for subject in dict.fromkeys(about)]
        rows = [self._model.token_ids(prompt) for prompt in prompts]
        common = _common([row for row, subject in zip(rows, about, strict=True) if subject == about[0]])
        ends = [row[common:] for row in rows]
        whole = self._model.encode([prompts[head] for head in heads], "right")
        ids = _unpadded(whole)
        length = len(ids[0]) - len(ends[heads[0]])
        if any(row[length:] != ends[head] for row, head in zip(ids, heads, strict=True)):
            return None
        self._model.check_room([length + len(end) for end in ends])
        width, padding, device = max(map(len, ends)), self._model.tokenizer.pad_token_id, whole["input_ids"].device
        inputs = {
            "input_ids": torch.tensor([end + [padding] * (width - len(end)) for end in ends], device=device),
            "attention_mask": torch.tensor(
                [[1] * (length + len(end)) + [0] * (width - len(end)) for end in ends], device=device
            ),
        }
        owners = [heads.index(about.index(subject)) for subject in about]
        return self._behind(whole, length, owners, _Batch(inputs, [len(end) for end in ends]))

    def _behind_instructions(self, prompts: list[Prompt]) -> _Batch | None:
        """What all prompts begin with, up to the first picture or to where the texts begin to differ."""
        whole = self._model.encode(prompts, "right")
        rows, mask = _unpadded(whole), whole["attention_mask"]
        self._model.check_room([len(row) for row in rows])
        length = _common(rows)
        if prompts[0].pictures:
            # A picture's placeholder is one token in the words alone, and grows where pictures are put in.
            length = min(length, _common([rows[0], self._model.token_ids(prompts[0])]) - 1)
        if length < WORTH_SHARING:
            return None
        first = {"input_ids": whole["input_ids"][:1], "attention_mask": mask[:1]}
        rest = {name: _columns(value, mask.shape, slice(length, None)) for name, value in whole.items()}
        batch = _Batch({**rest, "attention_mask": mask}, [len(row) - length for row in rows])
        return self._behind(first, length, [0] * len(rows), batch)

    def _behind(self, whole: dict[str, Any], length: int, owners: list[int], batch: _Batch) -> _Batch:
        """The batch behind the first `length` tokens of `whole`: each row behind those of its owner's row."""
        import torch

        shape, device = whole["input_ids"].shape, whole["input_ids"].device
        before = {name: _columns(value, shape, slice(0, length)) for name, value in whole.items()}
        last = torch.tensor([length - 1], device=device)
        cache = self._model.forward({**before, "use_cache": True}, last).past_key_values
        cache.reorder_cache(torch.tensor(owners, device=device))
        return _Batch({**batch.inputs, "past_key_values": cache, "use_cache": True}, batch.lengths, length)

    def _readings(self, batch: _Batch) -> list[YesNo]:
        import torch

        ends = sorted({length - 1 for length in batch.lengths})
        logits = self._model.forward(batch.inputs, torch.tensor(ends, device=batch.inputs["input_ids"].device)).logits
        chosen = [ends.index(length - 1) for length in batch.lengths]
        chances = logits[range(len(chosen)), chosen].float().softmax(dim=-1)
        yes, no = self._sum(chances, self._yes), self._sum(chances, self._no)
        return [
            YesNo(y / (y + n) if y + n > 0 else 0.5, y + n, batch.before + length, batch.before)
            for y, n, length in zip(yes, no, batch.lengths, strict=True)
        ]

    @staticmethod
    def _sum(chances: Tensor, ids: list[int]) -> list[float]:
        total: list[float] = chances[:, ids].double().sum(dim=1).tolist()
        return total


def yes_and_no_ids(model: ChatModel) -> tuple[list[int], list[int]]:
    """The tokens with which an answer of yes, and of no, can begin: in any case, with or without a space before."""
    yes, no = (_first_tokens(model.tokenizer, words) for words in (YES, NO))
    if not yes - no or not no - yes:
        raise OracleUnavailable(f"the tokenizer of model {model.name!r} cannot tell yes from no: choose another model")
    return sorted(yes - no), sorted(no - yes)


def _first_tokens(tokenizer: Any, words: Sequence[str]) -> set[int]:
    forms = [space + word for word in words for space in ("", " ")]
    spelled = [tokenizer(form, add_special_tokens=False)["input_ids"] for form in forms]
    whole = {ids[0] for ids in spelled if len(ids) == 1}
    return whole or {ids[0] for ids in spelled if ids}


def _unpadded(inputs: dict[str, Any]) -> list[list[int]]:
    lengths = inputs["attention_mask"].sum(dim=1).tolist()
    return [row[:length] for row, length in zip(inputs["input_ids"].tolist(), lengths, strict=True)]


def _common(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with, leaving each row at least one of its own."""
    shortest = min(map(len, rows)) - 1
    columns = zip(*(row[:shortest] for row in rows), strict=True)
    return next((place for place, column in enumerate(columns) if len(set(column)) > 1), shortest)


def _columns(value: Any, shape: Any, kept: slice) -> Any:
    """Tensors with one value per token are cut; pictures and everything else stay whole."""
    return value[:, kept] if getattr(value, "shape", None) == shape else value
