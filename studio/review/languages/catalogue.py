"""Texts by id and language: plural forms, numbers, times and the choice of a language from Accept-Language."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from studio.review.languages import english, french, german

Text = str | tuple[str, str]  # for one, and for any other number
LANGUAGES: dict[str, Mapping[str, Text]] = {"en": english.TEXTS, "de": german.TEXTS, "fr": french.TEXTS}
NO_BREAK, THIN = "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"
SEPARATORS = {"en": (",", "."), "de": (".", ","), "fr": (THIN, ",")}  # of thousands, and before decimals
MOMENTS = {"en": "%Y-%m-%d %H:%M", "de": "%d.%m.%Y %H:%M", "fr": "%d/%m/%Y %H:%M"}
NOTHING = "–"


class Moment(float):
    """Seconds since 1970, to be shown as a date with its time."""


class Catalogue:
    """The texts of one language. Values are escaped; texts may hold HTML of their own."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = LANGUAGES[language]

    def __call__(self, key: str, /, **values: Any) -> Markup:
        text = self._texts[key]
        if isinstance(text, tuple):
            text = text[not self._is_one(values["n"])]
        shown = {name: self._shown(value) for name, value in values.items()}
        return Markup(text).format(**shown)  # noqa: S704 - texts of this project; what is put in is escaped

    def plain(self, key: str, /, **values: Any) -> str:
        """Without HTML, for what is escaped or sent elsewhere."""
        return self(key, **values).unescape()

    def _is_one(self, n: float) -> bool:
        return n == 1 or (self.language == "fr" and n == 0)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Moment):
            return self.moment(value)
        if isinstance(value, float):
            return self.number(value, 1)
        return self.whole(value) if isinstance(value, int) else value

    def whole(self, value: int) -> str:
        return f"{value:,}".replace(",", SEPARATORS[self.language][0])

    def number(self, value: float | None, digits: int = 2) -> str:
        if value is None or value != value:
            return NOTHING
        thousands, point = SEPARATORS[self.language]
        return f"{value:,.{digits}f}".translate({ord(","): thousands, ord("."): point})

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


CATALOGUES = {language: Catalogue(language) for language in LANGUAGES}


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
    return next((tag for weight, _, tag in sorted(wanted) if weight < 0 and tag in LANGUAGES), "en")
