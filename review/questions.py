"""How each kind of question is worded for a person, and how a submitted form becomes an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from review.config import NameProblem
from review.forms import Form
from store.review import LeasedQuestion

NAME_LIMIT, DEFINITION_LIMIT, REASON_LIMIT = 60, 300, 200
REASONS = (
    "I cannot tell",
    "I cannot see or read it",
    "The question is unclear",
    "I would rather not look at this",
    "Something else",
)


@dataclass(frozen=True)
class Wording:
    question: str
    choose: int  # of the examples, those that have it; 0 where the question says which
    hint: str
    nothing: str


WORDINGS = {
    "two-of-three": Wording(
        "What do two of these share that the third lacks?", 2, "Choose the two, then name it.", "Nothing that two share"
    ),
    "pair": Wording(
        "What does one of these have that the other lacks?", 1, "Choose the one, then name it.", "No such difference"
    ),
    "one-of-three": Wording(
        "What does one of these have that the other two lack?", 1, "Choose the one, then name it.", "Nothing like that"
    ),
    "left-right": Wording(
        "What do all on the left have that none on the right has?", 0, "Name it.", "Nothing of the kind"
    ),
    "groups": Wording("What do clearly more on one side have than on the other?", 0, "Name it.", "No clear difference"),
    "tag": Wording("What does this have?", 0, "Name one thing that you notice.", "Nothing worth a name"),
    "family": Wording(
        "Which of these are values of one attribute?",
        0,
        "Mark those of which an example has one at most, as hair is black or grey, then name the attribute.",
        "They are not",
    ),
    "value": Wording("Which of these does it have?", 1, "Choose one.", "None of these"),
    "why": Wording("Does it have this, and why?", 1, "Choose one, then say what it rests on.", ""),
}
OPTIONS = {"family": "features", "value": "values"}  # of a question that is answered by choosing among words
HAS_OR_LACKS = (("It has it", ""), ("It lacks it", ""))
VALUES_LIMIT = 20
WHY_LIMIT, QUOTE_LIMIT = 400, 300


class Unclear(Exception):
    """The form is not an answer; the message says what is missing."""


def options_in(kind: str, question: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The words, each with a definition, that a person chooses among; none where examples are chosen."""
    if kind == "why":
        return HAS_OR_LACKS
    return question[OPTIONS[kind]] if kind in OPTIONS else ()


def comparison(
    shown: LeasedQuestion,
    form: Form,
    clean: Callable[[str], str],
    name_problem: NameProblem,
    examples: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The answer to a question that has a page of its own; `examples` are those it shows. Raises Unclear."""
    if shown.kind == "why":
        return _reason(form, clean, examples.get(shown.question["example"], {}))
    if "nothing" in form:
        return {"verdict": "none"}
    if shown.kind in OPTIONS:
        return _chosen(shown, form, clean, name_problem)
    wording, count = WORDINGS[shown.kind], len(shown.question["examples"])
    chosen = sorted({number for number in form.numbers("shown") if number < count})
    if wording.choose and len(chosen) != wording.choose:
        wanted = "the one that has it" if wording.choose == 1 else "the two that share it"
        raise Unclear(f"Choose {wanted}: {len(chosen)} {'is' if len(chosen) == 1 else 'are'} chosen now.")
    asked = shown.question
    name, definition = _named(form, clean, name_problem, asked.get("known", ()), asked.get("exclude", ()))
    if not wording.choose and shown.kind != "groups":  # of groups a person does not say which examples have it
        chosen = list(range(count))
    return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen}


def _named(
    form: Form,
    clean: Callable[[str], str],
    name_problem: NameProblem,
    known: Iterable[str],
    exclude: Iterable[str] = (),
) -> tuple[str, str]:
    name, definition = clean(form.one("name")[:400]), clean(form.one("definition")[:2000])
    if not name:
        raise Unclear("Give it a name of one to five words.")
    if problem := name_problem(name, known, exclude):
        raise Unclear(f"“{name}” cannot be used: {problem}.")
    if len(definition) > DEFINITION_LIMIT:
        raise Unclear(f"Keep the definition to one sentence of at most {DEFINITION_LIMIT} characters.")
    return name, definition


def _chosen(
    shown: LeasedQuestion, form: Form, clean: Callable[[str], str], name_problem: NameProblem
) -> dict[str, Any]:
    """The value that an example has, or the values of an attribute and its name."""
    options = shown.question[OPTIONS[shown.kind]]
    chosen = sorted({number for number in form.numbers("shown") if number < len(options)})
    if shown.kind == "value":
        if "several" in form:
            return {"verdict": "none", "note": "more than one of the values"}
        if len(chosen) != 1:
            raise Unclear(f"Choose one: {len(chosen)} are chosen now.")
        name, definition = options[chosen[0]]
        return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen}
    if len(chosen) < 2:
        raise Unclear("Mark at least two that belong together, or say that they are not values of one attribute.")
    name, definition = _named(form, clean, name_problem, ())
    words = [clean(word) for word in form.one("missing")[:4000].replace(";", ",").split(",")]
    new = list(dict.fromkeys(word for word in words if word))[:VALUES_LIMIT]
    for word in new:
        if problem := name_problem(word, [option[0] for option in options], ()):
            raise Unclear(f"“{word}” cannot be used: {problem}.")
    more = [[word, "", [len(chosen) + place]] for place, word in enumerate(new)]
    return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen, "more": more}


def _reason(form: Form, clean: Callable[[str], str], example: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the example has the feature, why, and of a text the words that show it, as they stand in it."""
    chosen = {number for number in form.numbers("shown") if number < len(HAS_OR_LACKS)}
    if len(chosen) != 1:
        raise Unclear("Choose whether it has it or lacks it.")
    has, why, quote = chosen == {0}, clean(form.one("why")[:2000]), form.one("quote")[:2000].split()
    if not any(character.isalpha() for character in why) or len(why) > WHY_LIMIT:
        raise Unclear(f"Say why, in one sentence of at most {WHY_LIMIT} characters.")
    text = example.get("text") or ""
    found = re.search(r"\s+".join(map(re.escape, quote)), text) if quote else None
    if quote and (found is None or len(found.group()) > QUOTE_LIMIT):
        raise Unclear(f"Copy the words of the text as they stand in it, {QUOTE_LIMIT} characters at most.")
    if has and text and not quote and example.get("image") is None:
        raise Unclear("Copy the words of the text that show it.")
    return {"verdict": "yes" if has else "no", "reason": why, "quote": found.group() if found else ""}


COMPARING = (
    "name",
    "shown",
    "nothing",
    "several",
    "choosing",
)  # fields that only a question with a page of its own has


def is_comparison(form: Form) -> bool:
    return any(name in form for name in COMPARING)


def labels(form: Form) -> tuple[dict[int, bool], list[int]]:
    """By lease whether the example has the feature, and the leases marked "cannot tell". Unmarked examples lack it."""
    yes, unsure, leases = set(form.numbers("has")), set(form.numbers("unsure")), form.numbers("lease")
    return {lease: lease in yes for lease in leases if lease not in unsure}, [one for one in leases if one in unsure]


def reason(form: Form, clean: Callable[[str], str]) -> str:
    return clean(form.one("reason")[:400])[:REASON_LIMIT] or REASONS[0]
