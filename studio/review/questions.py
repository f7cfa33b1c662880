"""What each kind of question wants of a person, and how a submitted form becomes an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twothirds.discovery import Kind, possible_counts
from twothirds.store.review import UNSURE, LeasedQuestion
from twothirds.studio.review.config import NameProblem
from twothirds.studio.review.forms import Form

DEFINITION_LIMIT, REASON_LIMIT = 300, 200
REASONS = {  # as the store keeps them, and their names in the catalogue
    UNSURE: "reason.unsure",
    "I cannot see or read it": "reason.unseen",
    "The question is unclear": "reason.unclear",
    "I would rather not look at this": "reason.unwilling",
    "Something else": "reason.other",
}
CHOOSING = ("two-of-three", "shared", "one-or-two", "pair", "one-of-three")  # which of the examples have it
OPTIONS = {"family": "features", "value": "values"}  # of a question that is answered by choosing among words
HAS_OR_LACKS = ("why.has", "why.lacks")  # of a question why, in the catalogue
TYPED = ("name", "definition", "missing", "why", "quote")  # fields of a question that has a page of its own
VALUES_LIMIT = 20
WHY_LIMIT, QUOTE_LIMIT = 400, 300


def choices(kind: str, count: int) -> range:
    """How many of the examples, or words, a person chooses; only 0 where the question itself says which."""
    if kind in CHOOSING:
        return possible_counts(Kind(kind), count)
    return range(1, 2) if kind in ("value", "why") else range(1)


class Unclear(Exception):
    """The form is not an answer: `key` of the catalogue says what is wrong with which field."""

    def __init__(self, field: str, key: str, **values: Any) -> None:
        super().__init__(key)
        self.field = field
        self.key = key
        self.values = values


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
    count = len(shown.question["examples"])
    choose = choices(shown.kind, count)
    chosen = sorted({number for number in form.numbers("shown") if number < count})
    if choose[-1] and len(chosen) not in choose:
        key = choose.start if len(choose) == 1 else "shared" if choose.start > 1 else "some"
        raise Unclear("shown", f"problem.choose.{key}", n=len(chosen))
    asked = shown.question
    name, definition = _named(form, clean, name_problem, asked.get("known", ()), asked.get("exclude", ()))
    if not choose[-1] and shown.kind != "groups":  # of groups a person does not say which examples have it
        chosen = list(range(count))
    return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen}


def _named(
    form: Form,
    clean: Callable[[str], str],
    name_problem: NameProblem,
    known: Iterable[str],
    exclude: Iterable[str] = (),
) -> tuple[str, str]:
    name, definition = clean(form.value("name")[:400]), clean(form.value("definition")[:2000])
    if not name:
        raise Unclear("name", "problem.no name")
    if fault := name_problem(name, known, exclude):
        raise Unclear("name", "problem.name", name=name, fault=fault)
    if len(definition) > DEFINITION_LIMIT:
        raise Unclear("definition", "problem.definition", n=DEFINITION_LIMIT)
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
            raise Unclear("shown", "problem.choose.value", n=len(chosen))
        name, definition = options[chosen[0]]
        return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen}
    if len(chosen) < 2:
        raise Unclear("shown", "problem.choose.family")
    name, definition = _named(form, clean, name_problem, ())
    words = [clean(word) for word in form.value("missing")[:4000].replace(";", ",").split(",")]
    new = list(dict.fromkeys(word for word in words if word))[:VALUES_LIMIT]
    for word in new:
        if fault := name_problem(word, [option[0] for option in options], ()):
            raise Unclear("missing", "problem.name", name=word, fault=fault)
    more = [[word, "", [len(chosen) + place]] for place, word in enumerate(new)]
    return {"verdict": "feature", "name": name, "definition": definition, "shown": chosen, "more": more}


def _reason(form: Form, clean: Callable[[str], str], example: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the example has the feature, why, and of a text the words that show it, as they stand in it."""
    chosen = {number for number in form.numbers("shown") if number < len(HAS_OR_LACKS)}
    if len(chosen) != 1:
        raise Unclear("shown", "problem.why.choose")
    has, why, quote = chosen == {0}, clean(form.value("why")[:2000]), form.value("quote")[:2000].split()
    if not any(character.isalpha() for character in why) or len(why) > WHY_LIMIT:
        raise Unclear("why", "problem.why", n=WHY_LIMIT)
    text = example.get("text") or ""
    found = re.search(r"\s+".join(map(re.escape, quote)), text) if quote else None
    if quote and (found is None or len(found.group()) > QUOTE_LIMIT):
        raise Unclear("quote", "problem.why.quote", n=QUOTE_LIMIT)
    if has and text and not quote and example.get("image") is None:
        raise Unclear("quote", "problem.why.no quote")
    return {"verdict": "yes" if has else "no", "reason": why, "quote": found.group() if found else ""}


COMPARING = ("name", "shown", "nothing", "several", "choosing")  # fields of a question with a page of its own


def is_comparison(form: Form) -> bool:
    return any(name in form for name in COMPARING)


def labels(form: Form) -> tuple[dict[int, bool], list[int]]:
    """By lease whether the example has the feature, and the leases marked "cannot tell". Unmarked examples lack it."""
    yes, unsure, leases = set(form.numbers("has")), set(form.numbers("unsure")), form.numbers("lease")
    labels = {lease: lease in yes for lease in leases if lease not in unsure}
    return labels, [lease for lease in leases if lease in unsure]


def reason(form: Form, clean: Callable[[str], str]) -> str:
    return clean(form.value("reason")[:400])[:REASON_LIMIT] or UNSURE
