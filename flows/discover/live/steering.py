"""What people who watch a discovery want of it: steer.jsonl in the run folder.

Lines are only added, with who and when, and the run adds after how many questions it has applied each. So a run is a
function of data, settings, seed, answers and that log: after a kill each command is applied after the same question."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType

from twothirds.flows.discover.live.commands import (
    AddFeature,
    AppliedMark,
    AskAbout,
    ChangeBudget,
    Command,
    ControlCommand,
    RecordedMark,
    Stop,
    Veto,
    read_line,
)
from twothirds.flows.discover.live.log import LiveLog
from twothirds.flows.discover.live.steered_loop import Effect, SteeredLoop
from twothirds.flows.settings import micro
from twothirds.models import Answer, Money
from twothirds.reports import Run
from twothirds.reports.curation import append_events, plan_change, read_events, record_change
from twothirds.reports.run import STEER, RunError, SteeredBy

LOOK_SECONDS = 1.0
Lines = list[ControlCommand | AppliedMark | RecordedMark | None]


class Steering:
    """Reads the commands between two questions. `reached` is how many questions earlier executions have asked: what was
    wanted since comes after these. `settings_budget` is that of the settings; after `halt` nothing more is asked."""

    def __init__(
        self,
        folder: Path,
        reached: int = 0,
        settings_budget: str = "",
        halt: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._path = folder, folder / STEER
        self._reached, self._settings_budget, self._halt = reached, settings_budget, halt
        self._while_labelling: tuple[type[Command], ...] = ()  # while the rest is labelled: what is applied
        self._before = len(self._lines())  # a command to stop that an earlier execution has applied is over
        self._effects: dict[int, Effect] = {}  # by line, of what was applied
        self._seen: tuple[int, int] | None = None
        self._allowed: tuple[tuple[int, int], Money | None] | None = None  # the state of the file, and the budget in it
        self.applied: list[SteeredBy] = []

    def budget(self) -> Money | None:
        """What may be spent now: a command for it holds from the moment that it is entered. Safe in any thread."""
        state, known = self._state(), self._allowed
        if known is None or known[0] != state:
            lines = self._lines()
            done = {mark.event: mark for mark in lines if isinstance(mark, AppliedMark)}
            texts = [self._settings_budget] + [
                str(command.usd)
                for number, command in enumerate(lines)
                if isinstance(command, ChangeBudget) and not self._is_over(number, command, done.get(number))
            ]
            known = self._allowed = state, micro(Decimal(texts[-1])) if texts[-1] else None
        return known[1]

    def apply_while_labelling(self, loop: SteeredLoop, live: LiveLog, *, over: bool = False) -> None:
        """The same while the examples that were not compared are labelled: what is about spending at once, and vetoes
        when that is over. Everything else waits until the run goes on."""
        self._while_labelling = (Veto,) if over else (Stop, ChangeBudget)
        self._seen = None
        self.apply(loop, live)

    def apply(self, loop: SteeredLoop, live: LiveLog) -> bool:
        """Do what is wanted and was not done yet, after a kill at the same question as before. Whether anything was."""
        if (state := self._state()) == self._seen:
            return False
        self._seen, applied = state, False
        lines = self._lines()
        done = {mark.event: mark for mark in lines if isinstance(mark, AppliedMark)}
        for number, command in enumerate(lines):
            if number in self._effects or not isinstance(command, Command):
                continue
            if self._is_over(number, command, done.get(number)):
                self._effects[number] = Effect()
            elif self._is_due(number, command, done.get(number), loop):
                self._apply(number, command, done.get(number), loop, live)
                applied = True
            else:
                self._seen = None  # its turn comes later
        return applied

    def _is_over(self, number: int, command: ControlCommand, mark: AppliedMark | None) -> bool:
        """A stop of an earlier execution, or a budget instead of one that the settings do not have any more."""
        if isinstance(command, Stop):
            return number < self._before
        return isinstance(command, ChangeBudget) and mark is not None and mark.instead_of != self._settings_budget

    def _is_due(self, number: int, command: ControlCommand, mark: AppliedMark | None, loop: SteeredLoop) -> bool:
        """What nothing can be asked for any more waits until the run goes on; it is marked at once, so that the run is
        the same again and does not apply it earlier."""
        if self._while_labelling:
            return self._is_due_while_labelling(number, command, mark, loop)
        if mark is not None and mark.while_labelling:
            return loop.progress.queries > mark.queries  # there are more questions now than there were
        at_once = isinstance(command, Stop | ChangeBudget)
        if loop.progress.queries < (mark.queries if mark else 0 if at_once else self._reached):
            return False
        stopped = loop.progress.stopped is not None and not isinstance(command, Stop | Veto | ChangeBudget)
        if not stopped and (not isinstance(command, AskAbout) or loop.can_ask()):
            return True
        if mark is None and not at_once:
            self._mark(number, command, loop)
        return False

    def _is_due_while_labelling(
        self, number: int, command: ControlCommand, mark: AppliedMark | None, loop: SteeredLoop
    ) -> bool:
        if mark is None and not isinstance(command, Stop | ChangeBudget | Veto):
            self._mark(number, command, loop)
        return isinstance(command, self._while_labelling) and (mark is None or mark.queries <= loop.progress.queries)

    def _mark(self, number: int, command: ControlCommand, loop: SteeredLoop) -> AppliedMark:
        instead_of = self._settings_budget if isinstance(command, ChangeBudget) else ""
        queries, while_labelling = loop.progress.queries, bool(self._while_labelling)
        mark = AppliedMark(event=number, queries=queries, instead_of=instead_of, while_labelling=while_labelling)
        self._note(mark)
        return mark

    def _apply(
        self, number: int, command: ControlCommand, mark: AppliedMark | None, loop: SteeredLoop, live: LiveLog
    ) -> None:
        """The mark comes first: an answer may come tomorrow, and the question is asked at this place again."""
        mark = mark or self._mark(number, command, loop)
        effect = self._effects[number] = loop.tried(partial(self._do, command, loop))
        live.steered(command, effect)
        self.applied.append(
            SteeredBy(
                after=mark.queries,
                rejected=effect.rejected,
                action=command.action,
                by=command.by,
                at=command.at,
                words=command.words,
            )
        )

    def _do(self, command: ControlCommand, loop: SteeredLoop) -> Effect:
        match command:
            case Stop():
                if not loop.progress.waiting:  # else what was named and paid for is labelled first
                    self._halt()
                return loop.stop()
            case Veto():
                return loop.veto(command.name, command.by)
            case AddFeature():
                return loop.add(command.name, command.definition, command.by)
            case AskAbout():
                return loop.ask(command.examples)
            case ChangeBudget():  # `budget` has told it already
                return Effect()

    def settle(self) -> None:
        """Once the run folder is written: vetoed features are dropped from it as curation does, by whoever wanted it;
        what was settled before is not done again."""
        lines = self._lines()
        settled = {mark.event for mark in lines if isinstance(mark, RecordedMark)}
        for number, effect in sorted(self._effects.items()):
            command = lines[number]
            if not effect.gone or number in settled or not isinstance(command, Command):
                continue
            run = Run(self._folder)
            with suppress(RunError):  # changed by hand in the meantime
                record_change(run, plan_change(run, "drop", {"names": [*effect.gone]}), by=command.by)
            self._note(RecordedMark(event=number))

    def _note(self, line: AppliedMark | RecordedMark) -> None:
        event = line.model_dump(exclude_defaults=True) | {"action": line.action}
        with suppress(OSError):  # without it the run is still steered, only not the same way again
            append_events(self._path, lambda _: [event])

    def _state(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
            return found.st_mtime_ns, found.st_size
        except OSError:
            return 0, 0

    def _lines(self) -> Lines:
        """Nothing where the file cannot be read: nobody steers the run then."""
        with suppress(RunError):
            return [read_line(event) for event in read_events(self._path)]
        return []


class WatchedRemaining:
    """While the examples that were not compared are labelled: called with every answer, looks once a second at what is
    wanted."""

    def __init__(
        self, examples: int, steering: Steering, loop: SteeredLoop, live: LiveLog, cost: Callable[[], Money]
    ) -> None:
        self._examples, self._cost = examples, cost
        self._steering, self._loop, self._live = steering, loop, live
        self._answers, self._looked = 0, 0.0

    def __enter__(self) -> WatchedRemaining:
        self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._live.remaining(self._examples, self._answers, self._cost())
            self._steering.apply_while_labelling(self._loop, self._live, over=True)

    def __call__(self, _answer: Answer) -> None:
        self._answers += 1
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._live.remaining(self._examples, self._answers, self._cost())
        self._steering.apply_while_labelling(self._loop, self._live)
