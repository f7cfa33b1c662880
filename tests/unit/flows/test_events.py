"""Whoever watches a run hears everything it tells, and cannot stop it."""

from __future__ import annotations

import json

import pytest

from tests.support.heard import Heard
from twothirds.flows import events as module
from twothirds.flows.events import Event, Events, FeatureRejected, Notice, Progressed, StepEnded, StepStarted, to_json


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _event: Event) -> None:
        self.calls += 1
        raise ConnectionError("away")


def test_one_who_watches_and_fails_is_dropped_with_one_warning_that_the_others_hear() -> None:
    broken, heard = Broken(), Heard()
    stream = Events(broken, heard.events.append)
    for number in range(3):
        stream.say(f"line {number}")
    assert broken.calls == 1
    assert sorted(heard.said) == ["Broken hears nothing of this run any more: ConnectionError: away"] + [
        f"line {number}" for number in range(3)
    ]


def test_two_who_fail_at_once_are_both_dropped() -> None:
    broken, also = Broken(), Broken()
    stream, heard = Events(broken, also), Heard()
    stream.to(heard.events.append).say("on it goes")
    assert (broken.calls, also.calls, heard.said) == (1, 1, ["on it goes"])


def test_a_part_of_a_run_is_heard_by_its_own_watchers_too_and_knows_its_cost() -> None:
    whole, part = Heard(), Heard()
    whole.stream.usd = lambda: 0.5
    own = whole.stream.to(part.events.append)
    own.say("of the part")
    whole.stream.say("of the whole")
    assert (whole.said, part.said) == (["of the part", "of the whole"], ["of the part"])
    with own.counting(2, "things") as show:
        show(1, "one")
    assert part.of(Progressed) == [Progressed(1, "things", "one", 2, 0.5)]


def test_of_a_quick_count_the_first_and_the_last_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPDATE_SECONDS", 3600.0)
    heard = Heard()
    with heard.stream.counting(None, "answers") as show:
        for done in range(1, 100):
            show(done, "")
    assert [counted.done for counted in heard.of(Progressed)] == [1, 99]
    assert [type(event) for event in (heard.events[0], heard.events[-1])] == [StepStarted, StepEnded]


def test_events_are_json_with_their_names() -> None:
    assert json.loads(json.dumps(to_json(FeatureRejected("beard", "Ann")))) == {
        "kind": "FeatureRejected",
        "name": "beard",
        "by": "Ann",
    }
    assert to_json(Notice("x"))["quiet"] is False
