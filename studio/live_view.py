"""A discovery as its page shows it: what was asked, answered and found so far, folded from its events one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from twothirds.discovery import Kind
from twothirds.reports.page import ASKED_FOR
from twothirds.reports.run import Findings, RunSummary
from twothirds.studio.web import ExampleTile, plural

Tiles = tuple[ExampleTile, ...]
TileOf = Callable[[str], ExampleTile]  # of an example's id
NOTHING = {"none": "nothing that it could name", "refused": "refused", "unreadable": "unreadable"}
QUESTIONS_SHOWN = 4  # of those that are asked at the same time
MANY = 5  # names in a line
WORDS = {kind.value: words for kind, words in ASKED_FOR.items()}


@dataclass(frozen=True)
class Asked:
    words: str
    examples: Tiles
    without: Tiles
    known: int


@dataclass(frozen=True)
class FoundLine:
    """A feature in the list of those that were found."""

    number: int
    name: str
    definition: str
    yes: int
    no: int
    unknown: int
    having: Tiles = ()
    lacking: Tiles = ()
    note: str = ""
    gone: bool = False

    @property
    def share(self) -> float:
        return self.yes / max(self.yes + self.no, 1)


@dataclass
class Row:
    """A question with its answer, or what a person wanted."""

    number: int
    having: Tiles
    lacking: Tiles
    words: str
    by: str
    features: list[FoundLine] = field(default_factory=list)
    alike: float | None = None
    bad: bool = False
    question: int = 0  # its number among the questions; 0 of what a person wanted


@dataclass
class LiveView:
    """`changed_rows` and `changed_features` are what a page that follows has not been sent yet."""

    tile: TileOf
    begun: dict[str, Any] = field(default_factory=lambda: {"queries": 0})  # a log may have no line yet
    asked: list[Asked] = field(default_factory=list)
    together: int = 0  # questions asked at the same time
    rows: list[Row] = field(default_factory=list)
    features: list[FoundLine] = field(default_factory=list)
    doing: str = ""
    waits: str = ""
    ended: str = ""
    message: str = ""
    queries: int = 0
    counting: int = 0
    usd: float = 0.0
    budget: float | None = None
    found: list[float] = field(default_factory=list)  # question by question
    alike: list[float] = field(default_factory=list)
    changed_rows: set[int] = field(default_factory=set)
    changed_features: set[int] = field(default_factory=set)
    _named: dict[str, tuple[Row, Tiles, Tiles]] = field(default_factory=dict)

    @property
    def people(self) -> bool:
        return str(self.begun.get("oracle", "")).startswith("human")

    def fold(self, events: Iterable[dict[str, Any]]) -> LiveView:
        for event in events:
            if (handle := HANDLERS.get(event["kind"])) is not None:
                handle(self, event)
        return self

    def take_changes(self) -> tuple[list[Row], list[FoundLine]]:
        """What is new since the last time, rows latest first."""
        rows = [self.rows[number] for number in sorted(self.changed_rows, reverse=True)]
        features = [self.features[number] for number in sorted(self.changed_features)]
        self.changed_rows, self.changed_features = set(), set()
        return rows, features

    def _on_begun(self, event: dict[str, Any]) -> None:
        self.__init__(self.tile, event, budget=event.get("budget_usd"))  # type: ignore[misc]
        self.doing = "It begins …"

    def _on_asking(self, event: dict[str, Any]) -> None:
        if event["features"]:
            self._label(event["features"])
            return
        self.waits, self.together = "", len(event["questions"])
        self.doing = "Asking what tells examples apart …"
        self.asked = [
            Asked(
                WORDS.get(asked["question"], asked["question"]),
                self._tiles(asked["examples"]),
                self._tiles(asked["without"]),
                int(asked["known"] or 0),
            )
            for asked in event["questions"][:QUESTIONS_SHOWN]
        ]

    def _label(self, features: list[list[str]]) -> None:
        names = [name for name, _ in features]
        listed = plural(len(names), "feature") if len(names) > MANY else ", ".join(names)
        self.asked, self.doing, self.waits = [], f"Labelling examples with {listed} …", ""

    def _count(self, event: dict[str, Any]) -> None:
        total = "" if event["total"] is None else f" of {event['total']:,}"
        self.usd = float(event["usd"] or 0)
        self.asked, self.doing = [], f"The questions are asked: {event['done']:,}{total} {event['unit']} …"

    def _on_answer(self, event: dict[str, Any]) -> None:
        asked, features = event["question"], event["features"]
        names = [*asked["examples"], *asked["without"]]
        shown = set(features[0][2]) if features else set[int]()
        if asked["question"] == Kind.LEFT_RIGHT.value:
            shown = set(range(len(asked["examples"])))
        having = self._tiles(name for place, name in enumerate(names) if place in shown)
        lacking = self._tiles(name for place, name in enumerate(names) if place not in shown)
        words = "" if features else NOTHING.get(event["verdict"], event["verdict"])
        row = Row(len(self.rows), having, lacking, words, event["by"], bad=not features, question=int(event["number"]))
        self.asked = []
        self._add(row)
        for name, _, places in features:
            own = set(places) or shown
            self._named[name] = (
                row,
                self._tiles(example for place, example in enumerate(names) if place in own),
                self._tiles(example for place, example in enumerate(names) if place not in own),
            )

    def _on_feature(self, event: dict[str, Any]) -> None:
        row, having, lacking = self._named.get(event["name"], (None, (), ()))
        note = f"added by {event['given']}" if event.get("given") else event["twin"]
        line = FoundLine(
            number=len(self.features),
            name=event["name"],
            definition=event["definition"],
            yes=event["yes"],
            no=event["no"],
            unknown=event["unknown"],
            having=having,
            lacking=lacking,
            note=note,
        )
        self.features.append(line)
        self.changed_features.add(line.number)
        if row is not None:
            row.features.append(line)
            self.changed_rows.add(row.number)

    def _on_state(self, event: dict[str, Any]) -> None:
        figures = event["figures"]
        if not figures:
            self._count(event)
            return
        self.queries, self.counting, self.usd = event["done"], figures["counting"], float(event["usd"])
        self.found.append(float(figures["features"]))
        self.alike.append(float(figures["g"]))
        for row in self.rows[::-1]:
            if not row.question or row.alike is not None:
                break
            row.alike = float(figures["g"])
            self.changed_rows.add(row.number)

    def _on_steered(self, event: dict[str, Any]) -> None:
        words = event["words"] + (f", rejected: {event['rejected']}" if event["rejected"] else "")
        self._add(Row(len(self.rows), (), (), words, event["by"], bad=bool(event["rejected"])))
        if event["action"] == "budget":
            self.budget = float(event["usd"])

    def _on_rejected(self, event: dict[str, Any]) -> None:
        for place, line in enumerate(self.features):
            if line.name == event["name"] and not line.gone:
                self.features[place] = replace(line, gone=True, note="vetoed")
                self.changed_features.add(place)

    def _on_waiting(self, event: dict[str, Any]) -> None:
        self.waits = f"It waits for {event['whom']}: {event['message']}" if event["whom"] else ""

    def _on_ended(self, event: dict[str, Any]) -> None:
        self.asked, self.waits = [], ""
        self.ended, self.message = event["reason"], event["message"]

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        self.changed_rows.add(row.number)

    def _tiles(self, names: Iterable[str]) -> Tiles:
        return tuple(self.tile(name) for name in names)


HANDLERS: dict[str, Callable[[LiveView, dict[str, Any]], None]] = {
    "RunStarted": LiveView._on_begun,
    "QuestionAsked": LiveView._on_asking,
    "AnswerReceived": LiveView._on_answer,
    "FeatureLabelled": LiveView._on_feature,
    "FeatureRejected": LiveView._on_rejected,
    "Progressed": LiveView._on_state,
    "CommandApplied": LiveView._on_steered,
    "Waiting": LiveView._on_waiting,
    "RunEnded": LiveView._on_ended,
}


def events_of(summary: RunSummary, findings: Findings) -> Iterator[dict[str, Any]]:
    """What a finished run has done, as its events would say it."""
    yield {
        "kind": "RunStarted",
        "name": summary.dataset.name,
        "oracle": summary.oracle.kind,
        "queries": summary.queries,
        "budget_usd": None,
    }
    found, new = {feature.name: feature for feature in findings.found}, set[str]()
    curve = [float(value) for value in summary.g_curve]
    for number, asked in enumerate(findings.comparisons, start=1):
        named = [answer for answer in asked.by_feature if answer.feature is not None]
        yield {
            "kind": "AnswerReceived",
            "number": number,
            "question": {
                "question": asked.kind.value,
                "examples": list(asked.examples),
                "without": list(asked.without),
            },
            "verdict": asked.verdict,
            "by": asked.by,
            "features": [[answer.feature, answer.definition, list(answer.shown)] for answer in named],
        }
        for answer in named:
            feature = found.get(str(answer.feature))
            if feature is None or feature.name in new:
                continue
            new.add(feature.name)
            yield {
                "kind": "FeatureLabelled",
                "name": feature.name,
                "definition": feature.definition,
                "yes": feature.positives,
                "no": feature.labelled - feature.positives,
                "unknown": len(findings.ids) - feature.labelled,
                "twin": feature.look or feature.twin,
            }
        if number <= len(curve):
            figures = {"features": len(new), "counting": 0, "g": curve[number - 1]}
            yield {"kind": "Progressed", "done": number, "usd": float(summary.total_usd), "figures": figures}
    yield {"kind": "RunEnded", "reason": summary.stopped_because, "message": ""}
