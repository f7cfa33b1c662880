"""Every text of the pages in every language, and no text that is not in the catalogue."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from twothirds.models.prompting.feature_names import FAULTS
from twothirds.studio.review.questions import REASONS
from twothirds.studio.web.languages import CATALOGUES, Moment, language_of, read_messages

STUDIO = Path(__file__).parents[4] / "studio"
TEMPLATES = sorted((STUDIO / "web" / "templates" / "review").glob("*.html"))
WORDS = re.compile(r"[^\W\d_]{2,}")
SHOWN = ("aria-label", "placeholder", "title", "alt", "data-text", "data-more", "data-less", "data-ready")
NAMES = {"twothirds"}  # of this program, the same in every language


def texts(language: str) -> dict[str, str | tuple[str, ...]]:
    """By id: a text, or its plural forms."""
    found: dict[str, str | tuple[str, ...]] = {}
    for message in read_messages(language):
        key, text = message.id if isinstance(message.id, str) else message.id[0], message.string
        assert text, key
        found[key] = text if isinstance(text, str) else tuple(text)
    return {key: text for key, text in found.items() if key}


ENGLISH = texts("en")


def fields(text: str | tuple[str, ...]) -> list[set[str]]:
    forms = (text,) if isinstance(text, str) else text
    return [{name for _, name, _, _ in string.Formatter().parse(form) if name} for form in forms]


@pytest.mark.parametrize("language", ["de", "fr"])
def test_every_text_is_there_in_every_language_with_the_same_values(language: str) -> None:
    translated = texts(language)
    assert set(translated) == set(ENGLISH)
    for key, text in ENGLISH.items():
        assert isinstance(translated[key], type(text)), f"{key}: plural forms in one language only"
        assert fields(translated[key]) == fields(text), key
    same = [key for key, text in ENGLISH.items() if translated[key] == text and len(WORDS.findall(str(text))) > 2]
    assert same == [], "left in English"


def keys_in(template: Path) -> set[str]:
    """Texts that a template asks for by a constant name."""
    tree = Environment(autoescape=True).parse(template.read_text(encoding="utf-8"))
    calls = (call for call in tree.find_all(nodes.Call) if isinstance(call.node, nodes.Name) and call.node.name == "t")
    return {call.args[0].value for call in calls if call.args and isinstance(call.args[0], nodes.Const)}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_no_template_says_anything_by_itself(template: Path) -> None:
    assert keys_in(template) <= set(ENGLISH)
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
    for attribute in SHOWN:
        assert WORDS.findall(" ".join(re.findall(rf'\b{attribute}="([^"]*)"', text))) == [], attribute
    between = " ".join(re.sub(r"<[^>]*>", "|", text).split("|"))
    assert set(WORDS.findall(between)) - NAMES == set()


def test_every_text_is_used() -> None:
    """By its name, or by what it begins with."""
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in [*STUDIO.glob("review/*.py"), STUDIO / "web" / "languages.py", *TEMPLATES]
    )
    begun = {"ask", "hint", "none", "kind", "state", "role", "note", "name", "warning", "estimate", "title", "column"}
    begun |= {"disputed", "training", "problem", "refused", "waiting", "paused", "finished", "reason"}
    unused = [key for key in ENGLISH if f'"{key}"' not in code and key.partition(".")[0] not in begun]
    assert unused == []


def test_what_is_wrong_with_a_name_and_why_one_skips_has_a_text() -> None:
    assert {f"name.{fault}" for fault in FAULTS} <= set(ENGLISH)
    assert set(REASONS.values()) <= set(ENGLISH)


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH,de;q=0.9,en;q=0.8", "de"),
        ("fr-CA", "fr"),
        ("en;q=0.4, fr;q=0.7", "fr"),
        ("ja, ko;q=0.9", "en"),
        ("ja, de;q=0.1", "de"),
        ("de;q=0, fr;q=0.1", "fr"),
        ("de;q=much", "en"),
        ("*", "en"),
    ],
)
def test_the_browser_chooses_the_language(accepted: str, language: str) -> None:
    assert language_of(accepted) == language


def test_numbers_times_and_plural_forms_are_those_of_the_language() -> None:
    english, german, french = (CATALOGUES[language] for language in ("en", "de", "fr"))
    assert english("thanks", name="Ann", n=1) == "Thank you, <bdi>Ann</bdi>: 1 answer is saved."
    assert german("thanks", name="Ann", n=1234).endswith("1.234 Antworten sind gespeichert.")
    assert french.plain("progress.answered", n=0) == "0 réponse"
    assert french.plain("progress.answered", n=2) == "2 réponses"
    assert german.number(1234.5) == "1.234,50"
    assert "<script>" not in english("thanks", name="<script>", n=1)
    assert german.moment(Moment(0)) == "01.01.1970 00:00"
    assert [say.duration(600) for say in (english, german, french)] == [
        "about 10 minutes",
        "etwa 10 Minuten",
        "10 minutes environ",
    ]
