"""The studio with many people at once: editors lose no update, reviewers are served as quickly as by the review."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.integration.studio.review.test_load import assert_exact, crowd_of, enqueue, percentile
from tests.support.review_site import HTMX, Visitor, free_port, start_page
from tests.support.slow import slow
from tests.support.studio_site import faces_run
from twothirds.flows.reviewing.page import PageSettings
from twothirds.flows.serving.app import StudioSettings, studio_link
from twothirds.reports.curation.corrections import read_corrections
from twothirds.reports.curation.log import read_log
from twothirds.reports.finished_run import Run
from twothirds.store import Store
from twothirds.studio.catalog import key_of

NAMES = ["hat", "beard", "glasses"]
_CELL = re.compile(r'<form class="cell (\w+)[^>]*aria-label="([^":]*): beard"')
_SEEN = re.compile(r'name="seen" value="(\d+)"')


class Editor(threading.Thread):
    """Corrects labels of a few examples and renames features, as fast as pages come, knowing only what it was shown."""

    def __init__(self, name: str, link: str, run: Run, rounds: int, think: float) -> None:
        super().__init__(daemon=True)
        self.name, self._link, self._run, self._rounds, self._think = name, link, run, rounds, think
        self._home = f"/runs/{key_of(run.folder.resolve())}"
        self.made: list[tuple[str, int, int]] = []  # example, label, how many corrections were seen before
        self.renamed = self.refused = 0
        self.seconds: list[float] = []
        self.trouble: BaseException | None = None

    def run(self) -> None:
        visitor = Visitor(self._link.partition("/s/")[0])
        try:
            self._work(visitor.open(self._link), random.Random(self.name))
        except BaseException as problem:
            self.trouble = problem
        finally:
            visitor.client.close()

    def _work(self, visitor: Visitor, chance: random.Random) -> None:
        ids = self._run.findings.ids[:3]
        seen = self._look(visitor)
        for number in range(self._rounds):
            time.sleep(self._think * chance.random())
            example = chance.choice(ids)
            label = 0 if self._shown[example] == "yes" else 1
            fields = {"example": example, "feature": "beard", "label": ("no", "yes")[label], "seen": seen, "cell": "1"}
            reply = self._timed(lambda: visitor.post(f"{self._home}/correct", fields, headers=HTMX))  # noqa: B023 called at once
            if reply.status_code == 200:
                self.made.append((example, label, seen))
                self._shown[example], seen = _CELL.findall(reply.text)[0][0], int(_SEEN.findall(reply.text)[0])
            else:
                assert reply.status_code == 409, reply.text
                self.refused += 1
                seen = self._look(visitor)
            if number % 5 == 4:
                self._rename(visitor, number)

    def _rename(self, visitor: Visitor, number: int) -> None:
        self._timed(lambda: visitor.get(self._home))
        changes = visitor.hidden("seen")[0]
        old = next(one for one in visitor.hidden("name") if one != "beard")
        command = {"action": "rename", "name": old, "to": f"{self.name} {number}", "seen": changes, "confirmed": "1"}
        reply = visitor.post(f"{self._home}/change", command)
        assert reply.status_code in (303, 409), reply.text
        self.renamed += reply.status_code == 303
        self.refused += reply.status_code == 409
        visitor.get(f"{self._home}/correct?which=all&feature=beard")  # a page with the token of its forms

    def _look(self, visitor: Visitor) -> int:
        """At the labels as they are; how many corrections there were by then."""
        self._timed(lambda: visitor.get(f"{self._home}/correct?which=all&feature=beard"))
        self._shown = {name: label for label, name in _CELL.findall(visitor.page)}
        return int(visitor.hidden("seen")[0])

    def _timed(self, ask_page: Callable[[], httpx.Response]) -> httpx.Response:
        began = time.monotonic()
        reply = ask_page()
        self.seconds.append(time.monotonic() - began)
        return reply


def assert_nothing_lost(run: Run, editors: list[Editor]) -> None:
    """Every edit that was acknowledged is in the log, and none replaced what its editor had not seen."""
    log = read_corrections(run.folder)
    for editor in editors:
        kept = [(place, one) for place, one in enumerate(log) if one.by == editor.name]
        assert [(one.example, one.label) for _, one in kept] == [(example, label) for example, label, _ in editor.made]
        for (place, mine), (_, _, seen) in zip(kept, editor.made, strict=True):
            unseen = [one for one in log[seen:place] if one.example == mine.example and one.by != editor.name]
            assert not unseen, f"{editor.name} replaced what {unseen[0].by} had said"
    assert len(log) == sum(len(editor.made) for editor in editors)
    labels = Run(run.folder).labels["beard"]
    assert {one.example: one.label for one in log} == {one.example: labels[one.example] for one in log}
    assert len(read_log(run.folder)) == sum(editor.renamed for editor in editors)


def studio_at_work(
    url: str, folder: Path, *, reviewers: int, questions: int, think: float, rounds: int
) -> tuple[float, float]:
    """Two editors and so many reviewers at once; how long 99 of 100 requests of reviewers and of editors took."""
    run, port = faces_run(folder / "runs" / "faces", NAMES), free_port()
    with Store.open(url) as store:
        enqueue(store, questions)
        page = start_page(url, port, command=("studio", str(folder / "runs")))
        settings = StudioSettings((str(folder / "runs"),), PageSettings(port=port))
        editors = [
            Editor(name, studio_link(store, name, "editor", settings), run, rounds, think) for name in ("Ann", "Bob")
        ]
        crowd = crowd_of(store, port, reviewers, think)
        try:
            for editor in editors:
                editor.start()
            crowd.wait()
            for editor in editors:
                editor.join()
        finally:
            crowd.end()
            page.kill()
            page.communicate()
        assert [repr(editor.trouble) for editor in editors if editor.trouble] == []
        assert_exact(store, crowd, questions)
        assert_nothing_lost(run, editors)
    return percentile(crowd.times.requests, 0.99), percentile([t for one in editors for t in one.seconds], 0.99)


@pytest.mark.parametrize("store_url", ["postgresql", *slow("sqlite")], indirect=True)
def test_two_editors_and_ten_reviewers_at_once_lose_no_update(store_url: str, tmp_path: Path) -> None:
    studio_at_work(store_url, tmp_path, reviewers=10, questions=30, think=0.02, rounds=15)


@pytest.mark.slow
def test_fifty_reviewers_and_two_editors_are_served_quickly(store_url: str, tmp_path: Path) -> None:
    slowest = studio_at_work(store_url, tmp_path, reviewers=50, questions=2000, think=1.0, rounds=60)
    assert max(slowest) < 0.3
