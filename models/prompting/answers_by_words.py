"""Answers about attributes with values, for oracles that write no text: by the names of features, or by which values
an example is known to have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discovery.families import WordGroup, groups_by_words
from models.oracle import SEVERAL, Answer, Choose, Family, Feature, NamedFeature, Verdict


def named_by_words(question: Family, by: str, vocabulary: Sequence[Feature] = ()) -> Answer:
    """The largest group of features whose names share a word, called by it. Colours and numbers that are missing are
    taken from the vocabulary. NONE where no word is shared."""
    if question.scale:
        return Answer(question, Verdict.NONE, by)
    names = [feature.name for feature in question.features]
    group = next(iter(groups_by_words(names)), None)
    if group is None:
        return Answer(question, Verdict.NONE, by)
    new = _missing(group, names, vocabulary) if group.specific else []
    return family_answer(question, by, Feature(group.name), group.members, new)


def family_answer(
    question: Family, by: str, attribute: Feature, members: Sequence[int], new: Sequence[Feature] = (), **rest: Any
) -> Answer:
    """That these features, by place, and values without a feature are the values of an attribute."""
    more = tuple(NamedFeature(value, (len(members) + place,)) for place, value in enumerate(new))
    return Answer(question, Verdict.FEATURE, by, attribute, tuple(members), more=more, **rest)


def chosen_answer(question: Choose, places: Sequence[int], by: str, **rest: Any) -> Answer:
    """That an example has the values at these places: one is the answer."""
    if len(places) == 1:
        return Answer(question, Verdict.FEATURE, by, question.values[places[0]], (places[0],), **rest)
    return Answer(question, Verdict.NONE, by, note=SEVERAL if places else "", **rest)


def _missing(group: WordGroup, names: Sequence[str], vocabulary: Sequence[Feature]) -> list[Feature]:
    known = [names[place] for place in group.members]
    fresh = [one for one in vocabulary if one.name not in names]
    wider = groups_by_words([*known, *(one.name for one in fresh)])
    same = next((one for one in wider if one.name == group.name and one.specific), None)
    return [] if same is None else [fresh[place - len(known)] for place in same.members if place >= len(known)]
