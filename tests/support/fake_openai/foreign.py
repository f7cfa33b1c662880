"""A lifelike server that reads prompts other than ours: fields of a schema or of a tool, and free questions.

What a request shows is found by its texts and pictures, what it asks by the fields of the reply: booleans are labels;
`tags`, `bullets`, `concepts`, `differences` and `groups` are what open questions ask for (benchmarks/peers/finding.py).
`served` says which labels each request has answered and when its reply left, for whoever counts what was paid twice."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.fake_openai.lifelike import VAGUE, Failings, LifelikeModel, LifelikeServer, meaning_of
from tests.support.fake_openai.mind import Page, Shown, example_of_schema
from tests.support.fake_openai.server import CHAT, PROBES, Rejected
from tests.support.fake_openai.wire import Response
from twothirds.models.prices import Price
from twothirds.sources import Dataset

SECOND_GROUP = re.compile(r"^Group B", re.MULTILINE)
FIELDS = "Here is a description of each field: "  # how LOTUS lists what it wants
ENOUGH = 0.25  # by how much the shares of two groups differ where a model notices it
Cell = tuple[int, int]  # row and column of the truth


@dataclass(frozen=True)
class Served:
    """One charged request."""

    arrived: float  # in seconds of the clock
    replied: float  # when its reply left
    cells: tuple[Cell, ...]  # labels that it was asked for


class WidelyReadMind(LifelikeModel):
    def shown(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
        """Group and row of each example, in their order; the second group begins after a line that says so."""
        group = 1
        for message in messages:
            content = message.get("content") or ""
            parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
            for part in parts:
                if "image_url" in part:
                    yield group, self.row_of(Shown("", None, [part["image_url"]["url"]]))
                    continue
                begins = SECOND_GROUP.search(part.get("text", ""))
                for place, row in self._rows_in(part.get("text", "")):
                    yield (2 if begins and place > begins.start() else group), row
                group = 2 if begins else group

    def _rows_in(self, text: str) -> list[tuple[int, int]]:
        places = ((text.find(known), row) for known, row in self._rows_of_text.items())
        return sorted((place, row) for place, row in places if place >= 0)

    def fill(self, body: Mapping[str, Any], fields: Mapping[str, Mapping[str, Any]], seed: str) -> dict[str, Any]:
        """A value for each field."""
        dice, shown = random.Random(f"{self.seed}:{seed}"), list(self.shown(body["messages"]))
        text = said(body["messages"])
        most = int(found.group(1)) if (found := re.search(r"up to (\d+)", text)) else 5
        listed = re.findall(r"^- (.+)$", text, re.MULTILINE)
        open_questions: dict[str, Callable[[], Any]] = {
            "tags": lambda: self.tags(shown, most, dice),
            "bullets": lambda: self.tags(shown, most, dice),
            "concepts": lambda: self.concepts(listed, most, dice),
            "differences": lambda: self.differences(shown, most, dice),
            "groups": lambda: self.groups(listed, dice),
        }
        reply = {}
        for name, schema in fields.items():
            if name in open_questions:
                reply[name] = open_questions[name]()
            elif schema.get("type") == "boolean" and shown:
                column = self.column_of(str(schema.get("title", name)), str(schema.get("description", "")))
                reply[name] = column is not None and self.seen(shown[0][1], column, dice)
            else:
                reply[name] = example_of_schema(schema)
        return reply

    def tags(self, shown: Sequence[tuple[int, int]], most: int, dice: random.Random) -> list[str]:
        """What is most salient in the first example."""
        having = [column for column in range(len(self.names)) if shown and self.seen(shown[0][1], column, dice)]
        return [self._worded(column, dice) for column in self._drawn(having, most, dice)]

    def concepts(self, lines: Sequence[str], most: int, dice: random.Random) -> list[dict[str, str]]:
        """What several of the lines say; what more of them say comes sooner."""
        columns = Counter(column for line in lines if (column := self.column_of(line, line)) is not None)
        common = [column for column, count in columns.most_common() if count > 1][:most]
        return [self._defined(column, dice) for column in common]

    def differences(self, shown: Sequence[tuple[int, int]], most: int, dice: random.Random) -> list[dict[str, str]]:
        """What clearly more of the first group have, the clearest first."""
        groups = [[row for group, row in shown if group == wanted] for wanted in (1, 2)]
        gaps = {}
        for column in range(len(self.names)):
            shares = [sum(self.seen(row, column, dice) for row in rows) / max(1, len(rows)) for rows in groups]
            gaps[column] = shares[0] - shares[1]
        clear = sorted((column for column, gap in gaps.items() if gap >= ENOUGH), key=lambda one: -gaps[one])
        return [self._defined(column, dice) for column in clear[:most]]

    def groups(self, tags: Sequence[str], dice: random.Random) -> list[dict[str, Any]]:
        """Tags that mean the same; now and then one is overlooked."""
        same: dict[object, list[str]] = {}
        for tag in dict.fromkeys(tags):
            column = self.column_of(tag)
            lost = dice.random() < self.habits.misjudges
            same.setdefault(tag if lost else meaning_of(tag) if column is None else column, []).append(tag)
        return [{"name": members[0], "tags": members} for members in same.values()]

    def _drawn(self, columns: Sequence[int], most: int, dice: random.Random) -> list[int]:
        """By salience, each once."""
        left, drawn = list(columns), list[int]()
        while left and len(drawn) < most:
            drawn += dice.choices(left, [float(self._salience[one]) for one in left])
            left.remove(drawn[-1])
        return drawn

    def _worded(self, column: int, dice: random.Random) -> str:
        vague = dice.random() < self.habits.vague
        return dice.choice(VAGUE) if vague else self.reworded(self.names[column], dice)

    def _defined(self, column: int, dice: random.Random) -> dict[str, str]:
        thing = self._worded(column, dice)
        return {"name": thing, "definition": f"The example shows or mentions {thing}."}


class WidelyReadServer(LifelikeServer):
    """A reply takes `first` seconds, and `per_token` for each token that is written."""

    def __init__(
        self,
        dataset: Dataset,
        habits: Failings | None = None,
        *,
        price: Price | None = None,
        seed: int = 0,
        first: float = 0.0,
        per_token: float = 0.0,
    ) -> None:
        super().__init__(dataset, habits, price=price, seed=seed)
        self.widely_read = WidelyReadMind(dataset, self.habits, seed)
        self.first, self.per_token = first, per_token
        self.served: list[Served] = []
        self._cells: list[Cell] = []
        self._written = 0

    def complete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = super().complete(path, body)
        self._written = data["usage"].get("completion_tokens", 0)
        return data

    def _spoiled(self, path: str, body: dict[str, Any]) -> Response:
        if path == CHAT and not body.get("messages"):
            raise Rejected(400, "messages must not be empty", param="messages")
        self._cells, arrived = [], time.time()
        response = super()._spoiled(path, body)
        response.delay = self.first + self.per_token * self._written
        if response.status == 200:
            self.served.append(Served(arrived, time.time() + response.delay, tuple(self._cells)))
        return response

    def _content(self, page: Page, body: dict[str, Any], enforced: str | None) -> str:
        if page.is_ours or str(body["messages"][0]["content"]).startswith(PROBES):
            if page.asks_labels:
                self._cells = [cell for each in page.cells().values() if (cell := self._cell(*each)) is not None]
            return super()._content(page, body, enforced)
        seed = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        fields = fields_of(body)
        if not fields:
            return super()._content(page, body, enforced)
        reply = self.widely_read.fill(body, fields, seed)
        rows = [row for _, row in self.widely_read.shown(body["messages"])]
        for name, schema in fields.items():
            column = self.lifelike.column_of(str(schema.get("title", name)), str(schema.get("description", "")))
            if isinstance(reply[name], bool) and rows and column is not None:
                self._cells.append((rows[0], column))
        return json.dumps(reply, separators=(",", ":") if enforced != "json_object" else None)

    def _cell(self, example: Shown, feature: Mapping[str, str]) -> Cell | None:
        column = self.lifelike.column_of(feature["name"], feature.get("definition", ""))
        return None if column is None else (self.lifelike.row_of(example), column)

    def _as_asked(self, body: dict[str, Any], data: dict[str, Any]) -> None:
        """A tool is called where one must be, unless the model writes what is no JSON."""
        if not body.get("tools") or "choices" not in data:
            return
        message = data["choices"][0]["message"]
        try:
            json.loads(message["content"])
        except (TypeError, ValueError):
            return
        called = {"name": body["tools"][0]["function"]["name"], "arguments": message["content"]}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call_{data['id']}", "type": "function", "function": called}],
        }


def said(messages: Iterable[Mapping[str, Any]]) -> str:
    """All texts of a conversation."""
    parts = []
    for message in messages:
        content = message.get("content") or ""
        parts += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(parts)


def fields_of(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the reply is to hold: by the tool's parameters, by the schema, or as LOTUS lists it."""
    if body.get("tools"):
        return _properties(body["tools"][0]["function"].get("parameters", {}))
    form = body.get("response_format") or {}
    if "json_schema" in form:
        return _properties(form["json_schema"]["schema"])
    text = said(body["messages"])
    if FIELDS in text:
        listed = text.partition(FIELDS)[2].partition("\n")[0]
        described: dict[str, str] = ast.literal_eval(listed)
        return {name: {"type": "boolean", "description": meaning} for name, meaning in described.items()}
    return {}


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = schema.get("properties", {})
    return found
