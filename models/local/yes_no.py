"""P(yes) from a chat model's next token, for many prompts at once.

Prompts are padded on the right: attention is causal, so padding changes nothing and every token keeps its position.
The common prefix of the prompts of a batch is computed once, and its keys and values are reused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twothirds.models.local.chat_model import ChatModel, ContextOverflow, Prompt
from twothirds.models.oracle import OracleUnavailable

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


@dataclass(slots=True)
class _Group:
    """Prompts that are read together."""

    common: int  # tokens that the prompts of each subject begin with, pictures counted as one; 0 where none are shared
    places: list[int] = field(default_factory=list)  # in what was asked
    prompts: list[Prompt] = field(default_factory=list)
    ends: list[list[int]] = field(default_factory=list)  # of each prompt, what is not common
    owners: list[int] = field(default_factory=list)  # for each prompt, which head it begins like
    heads: list[int] = field(default_factory=list)  # for each subject, the row of its first prompt


class YesNoReader:
    def __init__(self, model: ChatModel, *, share_prefix: bool = True) -> None:
        self._model = model
        self._share_prefix = share_prefix
        self._allowed: dict[tuple[bool, bool], bool] = {}  # which ways of sharing this model allows, by trial
        self._instructions: tuple[list[int], Any] | None = None  # those last shared, with their keys and values
        self._yes, self._no = yes_and_no_ids(model)

    def read(self, prompts: Sequence[Prompt], subjects: Sequence[Hashable]) -> list[YesNo]:
        """One reading per prompt. Prompts with the same subject show the same pictures and begin alike.

        Raises ContextOverflow with the places of the prompts that are too long."""
        readings: dict[int, YesNo] = {}
        for group in self._groups(prompts, subjects):
            try:
                found = self._read_group(group)
            except ContextOverflow as overflow:
                raise ContextOverflow({group.places[row]: tokens for row, tokens in overflow.lengths.items()}) from None
            readings |= zip(group.places, found, strict=True)
        return [readings[place] for place in range(len(prompts))]

    def _groups(self, prompts: Sequence[Prompt], of_prompts: Sequence[Hashable]) -> list[_Group]:
        """Prompts whose examples can be shared, cut where they begin to differ, and the rest."""
        families: dict[tuple[tuple[int, int], ...], dict[Hashable, list[int]]] = {}
        for place, (prompt, subject) in enumerate(zip(prompts, of_prompts, strict=True)):
            sizes = tuple(picture.size for picture in prompt.pictures)
            families.setdefault(sizes, {}).setdefault(subject, []).append(place)
        share = self._share_prefix and len(set(of_prompts)) < len(of_prompts)
        words = self._model.token_ids(prompts) if share else [[] for _ in prompts]
        groups: dict[tuple[Hashable, int], _Group] = {}
        for sizes, subjects in families.items():
            for places, common in _cuts(list(subjects.values()), words):
                group = groups.setdefault((sizes if common else bool(sizes), common), _Group(common))
                group.heads.append(len(group.places))
                for place in places:
                    group.places.append(place)
                    group.prompts.append(prompts[place])
                    group.ends.append(words[place][common:])
                    group.owners.append(len(group.heads) - 1)
        return list(groups.values())

    def _read_group(self, group: _Group) -> list[YesNo]:
        way = (group.common > 0, bool(group.prompts[0].pictures))
        if len(group.prompts) == 1 or not self._share_prefix or not self._allowed.get(way, True):
            return self._plain(group)
        if way in self._allowed:
            return self._sharing(group) or self._plain(group)
        plain = self._plain(group)
        try:
            shared = self._sharing(group)
            if shared:
                self._allowed[way] = self._agree(plain, shared)
        except Exception:  # whatever a model raises here, it says that it does not allow this
            self._allowed[way] = False
        return plain

    def _agree(self, plain: list[YesNo], shared: list[YesNo]) -> bool:
        tolerance = TOLERANCE.get(str(self._model.model.dtype).removeprefix("torch."), 0.0)
        return all(
            abs(reading.probability - other.probability) <= tolerance and abs(reading.mass - other.mass) <= tolerance
            for reading, other in zip(plain, shared, strict=True)
        )

    def _plain(self, group: _Group) -> list[YesNo]:
        inputs = self._model.encode(group.prompts, "right")
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        self._model.check_room(lengths)
        return self._readings(_Batch(inputs, lengths))

    def _sharing(self, group: _Group) -> list[YesNo]:
        """Empty where the prompts have too little in common."""
        batch = self._behind_examples(group) if group.common else self._behind_instructions(group.prompts)
        return self._readings(batch) if batch else []

    def _behind_examples(self, group: _Group) -> _Batch | None:
        """Each example is looked at once; its prompts differ only in what follows it."""
        import torch

        ends, heads = group.ends, group.heads
        encoded = self._model.encode([group.prompts[head] for head in heads], "right")
        ids = _unpadded(encoded)
        length = len(ids[0]) - len(ends[heads[0]])
        if any(row[length:] != ends[head] for row, head in zip(ids, heads, strict=True)):
            return None
        self._model.check_room([length + len(end) for end in ends])
        width, padding, device = max(map(len, ends)), self._model.tokenizer.pad_token_id, encoded["input_ids"].device
        inside = torch.arange(length + width) < torch.tensor([[length + len(end)] for end in ends])
        inputs = {
            "input_ids": torch.tensor([end + [padding] * (width - len(end)) for end in ends], device=device),
            "attention_mask": inside.to(device, torch.long),
        }
        cache = self._computed(encoded, length)
        return _behind(cache, length, group.owners, _Batch(inputs, [len(end) for end in ends]))

    def _behind_instructions(self, prompts: list[Prompt]) -> _Batch | None:
        """What all prompts begin with, up to the first picture or to where the texts begin to differ."""
        encoded = self._model.encode(prompts, "right")
        ids, mask = encoded["input_ids"], encoded["attention_mask"]
        lengths = mask.sum(dim=1).tolist()
        self._model.check_room(lengths)
        length = min(int((ids == ids[0]).all(dim=0).long().cumprod(dim=0).sum()), min(lengths) - 1)
        if prompts[0].pictures:
            # A picture's placeholder is one token in the words alone, and grows where pictures are put in.
            length = min(length, _common([ids[0].tolist(), *self._model.token_ids(prompts[:1])]) - 1)
        if length < WORTH_SHARING:
            return None
        rest = {name: _columns(value, mask.shape, slice(length, None)) for name, value in encoded.items()}
        batch = _Batch({**rest, "attention_mask": mask}, [row - length for row in lengths])
        cache = self._computed_instructions({"input_ids": ids[:1], "attention_mask": mask[:1]}, length)
        return _behind(cache, length, [0] * len(lengths), batch)

    def _computed_instructions(self, first: dict[str, Any], length: int) -> Any:
        """As the last batch left them where it began with the same: one feature often fills many batches."""
        words = first["input_ids"][0, :length].tolist()
        if self._instructions is None or self._instructions[0] != words:
            self._instructions = None  # not two at a time
            self._instructions = words, self._computed(first, length)
        return deepcopy(self._instructions[1])

    def _computed(self, inputs: dict[str, Any], length: int) -> Any:
        """Keys and values of the first `length` tokens."""
        import torch

        shape, device = inputs["input_ids"].shape, inputs["input_ids"].device
        before = {name: _columns(value, shape, slice(0, length)) for name, value in inputs.items()}
        last = torch.tensor([length - 1], device=device)
        return self._model.forward({**before, "use_cache": True}, last).past_key_values

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


def _behind(cache: Any, length: int, owners: list[int], batch: _Batch) -> _Batch:
    """The batch behind `length` computed tokens: each row behind those of its owner's row."""
    import torch

    cache.reorder_cache(torch.tensor(owners, device=batch.inputs["input_ids"].device))
    return _Batch({**batch.inputs, "past_key_values": cache, "use_cache": True}, batch.lengths, length)


def yes_and_no_ids(model: ChatModel) -> tuple[list[int], list[int]]:
    """The tokens with which an answer of yes, and of no, can begin: in any case, with or without a space before."""
    yes, no = (_first_tokens(model.tokenizer, words) for words in (YES, NO))
    if not yes - no or not no - yes:
        raise OracleUnavailable(f"the tokenizer of model {model.name!r} cannot tell yes from no: choose another model")
    return sorted(yes - no), sorted(no - yes)


def _first_tokens(tokenizer: Any, words: Sequence[str]) -> set[int]:
    forms = [space + word for word in words for space in ("", " ")]
    spelled = [tokenizer(form, add_special_tokens=False)["input_ids"] for form in forms]
    single_tokens = {ids[0] for ids in spelled if len(ids) == 1}
    return single_tokens or {ids[0] for ids in spelled if ids}


def _cuts(subjects: list[list[int]], words: Sequence[list[int]]) -> list[tuple[list[int], int]]:
    """For the prompts of each subject, after how many tokens to cut off what they share; 0 where that is too little.

    One cut for all, so that they are read together, unless that would save less than half of what is possible."""
    common = [_common([words[place] for place in places]) if len(places) > 1 else 0 for places in subjects]
    savings = [(length, len(places) - 1) for places, length in zip(subjects, common, strict=True) if length]
    least = min((length for length, _ in savings), default=0)
    if least >= WORTH_SHARING and 2 * sum(least * n for _, n in savings) >= sum(length * n for length, n in savings):
        common = [least if len(words[places[0]]) > least else 0 for places in subjects]
    return [(places, cut if cut >= WORTH_SHARING else 0) for places, cut in zip(subjects, common, strict=True)]


def _unpadded(inputs: dict[str, Any]) -> list[list[int]]:
    lengths = inputs["attention_mask"].sum(dim=1).tolist()
    return [row[:length] for row, length in zip(inputs["input_ids"].tolist(), lengths, strict=True)]


def _common(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with, leaving each row at least one of its own."""
    shortest = min(map(len, rows)) - 1
    columns = zip(*(row[:shortest] for row in rows), strict=True)
    return next((place for place, column in enumerate(columns) if len(set(column)) > 1), shortest)


def _columns(value: Any, shape: Any, columns: slice) -> Any:
    """Tensors with one value per token are cut; pictures and everything else stay whole."""
    return value[:, columns] if getattr(value, "shape", None) == shape else value
