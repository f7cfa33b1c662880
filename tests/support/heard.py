"""Whoever listens to a run in a test: what was said to the one who started it, and what was for its log alone."""

from __future__ import annotations

from typing import TypeVar

from twothirds.flows.events import Event, Events, Notice

Kind = TypeVar("Kind")


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.stream = Events(self.events.append)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    @property
    def said(self) -> list[str]:
        return [notice.message for notice in self.of(Notice) if not notice.quiet]

    @property
    def logged(self) -> list[str]:
        return [notice.message for notice in self.of(Notice) if notice.quiet]
