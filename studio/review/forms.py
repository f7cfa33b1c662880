"""Reads forms, which are small, URL-encoded and never trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.exceptions import HTTPException

MAX_FIELDS = 400
MAX_NUMBER = 2**63 - 1  # that the store can hold


@dataclass(frozen=True)
class Form:
    fields: tuple[tuple[str, str], ...] = field(default=())

    def value(self, name: str) -> str:
        """The first value of a field; empty where there is none."""
        return next((value for key, value in self.fields if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key == name]

    def numbers(self, name: str) -> list[int]:
        """The values that are whole numbers; others are ignored."""
        found = [int(value) for value in self.all(name) if value.isascii() and value.isdigit() and len(value) < 20]
        return [number for number in found if number <= MAX_NUMBER]

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.fields)


async def read_form(request: Request) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(400) from None
    return Form(tuple(pairs))
