"""The texts of the review pages by id and language (messages/*.po): plural forms, numbers, times, and the choice of a
language from Accept-Language."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from functools import cached_property
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from markupsafe import Markup

MESSAGES = Path(__file__).parent / "messages"
MOMENTS = {"en": "%Y-%m-%d %H:%M", "de": "%d.%m.%Y %H:%M", "fr": "%d/%m/%Y %H:%M"}
NO_BREAK = "\N{NO-BREAK SPACE}"
NOTHING = "–"


class Moment(float):
    """Seconds since 1970, to be shown as a date with its time."""


def read_messages(language: str) -> Catalog:
    with (MESSAGES / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


class Catalogue:
    """The texts of one language. Values are escaped; texts may hold HTML of their own."""

    def __init__(self, language: str) -> None:
        self.language = language

    @cached_property
    def _texts(self) -> GNUTranslations:
        compiled = io.BytesIO()
        write_mo(compiled, read_messages(self.language))
        compiled.seek(0)
        return GNUTranslations(compiled)

    def __call__(self, key: str, /, **values: Any) -> Markup:
        text = self._texts.ngettext(key, key, values["n"]) if isinstance(values.get("n"), int) else None
        if text is None or text == key:
            text = self._texts.gettext(key)
        shown = {name: self._shown(value) for name, value in values.items()}
        return Markup(text).format(**shown)  # noqa: S704 - texts of this project; what is put in is escaped

    def plain(self, key: str, /, **values: Any) -> str:
        """Without HTML, for what is escaped or sent elsewhere."""
        return self(key, **values).unescape()

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Moment):
            return self.moment(value)
        if isinstance(value, float):
            return self.number(value, 1)
        return self.integer(value) if isinstance(value, int) else value

    def integer(self, value: int) -> str:
        return format_decimal(value, locale=self.language)

    def number(self, value: float | None, digits: int = 2) -> str:
        if value is None or value != value:
            return NOTHING
        return format_decimal(value, format=f"#,##0.{'0' * digits}", locale=self.language)

    def share(self, value: float | None) -> str:
        return NOTHING if value is None or value != value else f"{100 * value:.0f}{NO_BREAK}%"

    def moment(self, seconds: float | None) -> str:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime(MOMENTS[self.language])

    def duration(self, seconds: float) -> str:
        if seconds < 90:
            return self.plain("duration.minutes", n=1)
        if seconds < 5400:
            return self.plain("duration.minutes", n=round(seconds / 60))
        return self.plain("duration.hours", n=round(seconds / 3600))


CATALOGUES = {language: Catalogue(language) for language in MOMENTS}


def language_of(accepted: str) -> str:
    """The language of the catalogue that an Accept-Language header wants most; English where it wants none of them."""
    wanted = []
    for place, part in enumerate(accepted[:500].split(",")):
        tag, _, quality = part.strip().partition(";")
        weight = quality.strip().removeprefix("q=")
        try:
            wanted.append((-float(weight) if weight else -1.0, place, tag.partition("-")[0].strip().lower()))
        except ValueError:
            continue
    return next((tag for weight, _, tag in sorted(wanted) if weight < 0 and tag in CATALOGUES), "en")
