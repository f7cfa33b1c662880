"""Turns questions of the queue into the context of a template, and renders it.

Everything is escaped, and an undefined name is an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from review.media import film_kind
from review.questions import REASONS, WORDINGS, options_in
from store.review import EXEMPLARS, LeasedQuestion, QueueProgress, digests_in, digests_shown

LETTERS = "abcdefghijklmopqrtvwxyz"  # keys that mark an example: without n, s and u, which are shortcuts


@dataclass(frozen=True)
class Card:
    """One example as a template shows it."""

    name: str  # for people, as in `Example 1`
    value: int
    digest: str
    text: str | None
    pictured: bool
    film: bool
    marked: bool = False


def card(name: str, value: int, digest: str, shown: dict[str, Any] | None, *, marked: bool = False) -> Card:
    found = shown or {"text": None, "image": None}
    image = found["image"]
    return Card(name, value, digest, found["text"], image is not None, film_kind(image) is not None, marked)


def digests_of(shown: list[LeasedQuestion]) -> list[str]:
    return [digest for one in shown for digest in digests_shown(one.question)]


def page_context(shown: list[LeasedQuestion], examples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """For the template of a comparison or of a page of labels."""
    first = shown[0]
    leases = [one.id for one in shown]
    if first.kind != "label":
        said = first.answer or {}
        digests = digests_in(first.question)
        cards = [
            card(f"Example {number + 1}", number, digest, examples.get(digest), marked=number in said.get("shown", ()))
            for number, digest in enumerate(digests)
        ]
        split = len(digests) - len(first.question.get("without", ()))
        return {
            "template": "compare.html",
            "wording": WORDINGS[first.kind],
            "kind": first.kind,
            "cards": cards[:split],
            "without": cards[split:],
            "known": first.question.get("known", []),
            "about": first.question.get("about", ""),
            "avoid": "; ".join(filter(None, [first.question.get("avoid"), *first.question.get("exclude", ())])),
            "options": options_of(first.kind, first.question, _chosen(said)),
            "attribute": first.question.get("attribute") or first.question.get("feature", ("", "")),
            "given": _given(said),
            "leases": leases,
            "reasons": REASONS,
        }
    return {
        "template": "label.html",
        "feature": first.question["feature"][0],
        "definition": first.question["feature"][1],
        "about": first.question.get("about", ""),
        "exemplars": _exemplars(shown, examples),
        "cards": [
            card(
                f"Example {number + 1}",
                one.id,
                one.question["example"],
                examples.get(one.question["example"]),
                marked=(one.answer or {}).get("verdict") == "yes",
            )
            for number, one in enumerate(shown)
        ],
        "keys": LETTERS,
        "leases": leases,
        "reasons": REASONS,
    }


def _given(said: Mapping[str, Any]) -> dict[str, str]:
    """What an answer that was undone holds, by the fields of the form."""
    typed = {key: said.get(key, "") for key in ("name", "definition", "quote")}
    missing = ", ".join(name for name, *_ in said.get("more", ()))
    return typed | {"missing": missing, "why": said.get("reason", "")}


def _chosen(said: Mapping[str, Any]) -> Collection[int]:
    """Places of the words that it chose: of a reason by its verdict."""
    chosen: Collection[int] = said.get("shown", ())
    return chosen or {"yes": (0,), "no": (1,)}.get(said.get("verdict", ""), ())


def _exemplars(shown: list[LeasedQuestion], examples: dict[str, dict[str, Any]]) -> list[Card]:
    """Examples that are known to have the feature, which are marked, or to lack it; not those that are asked about."""
    asked = {one.question["example"] for one in shown}
    listed = next((one.question[EXEMPLARS] for one in shown if EXEMPLARS in one.question), ())
    known = [pair for pair in listed if pair[0] not in asked]
    return [
        card("This has it" if has else "This lacks it", number, digest, examples.get(digest), marked=has)
        for number, (digest, has) in enumerate(known)
    ]


@dataclass(frozen=True)
class Option:
    """One of the words that a question lets people choose among."""

    value: int
    key: str
    name: str
    definition: str
    marked: bool


def options_of(kind: str, question: dict[str, Any], marked: Collection[int]) -> list[Option]:
    keys = [*"123456789", *LETTERS]
    return [
        Option(number, keys[number] if number < len(keys) else "", name, definition, number in marked)
        for number, (name, definition) in enumerate(options_in(kind, question))
    ]


def progress_line(progress: QueueProgress) -> str:
    if progress.left == 0:
        return f"{progress.given:,} answered"
    left = f"{progress.given:,} answered, {progress.left:,} to go"
    if progress.seconds is None:
        return left
    return f"{left}, {duration(progress.left * max(progress.seconds, 0.5))} left"


def duration(seconds: float) -> str:
    if seconds < 90:
        return "about a minute"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {round(seconds / 3600)} hours"


def moment(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def share(value: float | None) -> str:
    return "–" if value is None or value != value else f"{100 * value:.0f} %"


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None or value != value else f"{value:,.{digits}f}"


FILTERS = {"moment": moment, "share": share, "number": number}


class Templates:
    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,  # saves a look at the template's file for every page
        )
        self._environment.filters.update(FILTERS)

    def page(self, template: str, status: int = 200, /, **context: Any) -> HTMLResponse:
        text = self._environment.get_template(template).render(context)
        return HTMLResponse(text.encode("utf-8", "replace"), status)
