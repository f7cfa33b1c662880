"""What people who watch a discovery want of it: steer.jsonl in the run folder.

Lines are only added, with who and when, and the run adds after how many questions it has applied each. So a run is a
function of data, settings, seed, answers and that log: after a kill each command is applied after the same question."""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from twothirds.flows.discover.commands import (
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
from twothirds.flows.discover.loop import CommandRejected, Loop
from twothirds.flows.events import CommandApplied, Events
from twothirds.flows.settings import micro
from twothirds.models import RunLedger
from twothirds.reports import Run
from twothirds.reports.curation import append_events, plan_change, read_events, record_change
from twothirds.reports.run import STEER, RunError, SteeredBy

LOOK_SECONDS = 1.0  # between two looks while labels are asked
Lines = list[ControlCommand | AppliedMark | RecordedMark | None]


class Control:
    """Applies commands between two questions, and what is about spending while labels are asked. `reached` is how many
    questions earlier executions have asked: what was wanted since comes after these. `settings_budget` is that of the
    settings, which outranks the commands given under another one."""

    def __init__(
        self, folder: Path, ledger: RunLedger, events: Events, reached: int = 0, settings_budget: str = ""
    ) -> None:
        self._folder, self._path = folder, folder / STEER
        self._ledger, self._events = ledger, events
        self._reached, self._settings_budget = reached, settings_budget
        self._only: tuple[type[Command], ...] = ()  # what is applied while the other examples are labelled
        self._before = len(self._lines())  # a command to stop that an earlier execution has applied is over
        self._gone: dict[int, str] = {}  # by line, of what was applied: the feature that the results no longer have
        self._seen: tuple[int, int] | None = None  # the file when everything in it was applied
        self._looked = 0.0
        self.applied: list[SteeredBy] = []
        self._set_budget(self._lines())

    def apply(self, loop: Loop) -> bool:
        """Do what is wanted and was not done yet, after a kill at the same question as before. Whether anything was."""
        if (state := self._state()) == self._seen:
            return False
        self._seen, lines = state, self._lines()
        self._set_budget(lines)
        marks = {mark.event: mark for mark in lines if isinstance(mark, AppliedMark)}
        before = len(self.applied)
        for number, command in enumerate(lines):
            if number in self._gone or not isinstance(command, Command):
                continue
            mark = marks.get(number)
            if self._is_over(number, command, mark):
                self._gone[number] = ""
            elif self._is_due(number, command, mark, loop):
                self._apply(number, command, mark, loop)
            else:
                self._seen = None  # its turn comes later
        return len(self.applied) > before

    def watch(self, loop: Loop) -> None:
        """Called with every answer to a label: a budget holds from the moment that it is entered, and while the
        examples that were not compared are labelled a command to stop as well."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if self._only:
            self.apply(loop)
        elif self._state() != self._seen:
            self._set_budget(self._lines())

    def label_remaining(self, loop: Loop) -> None:
        """From now on the examples that were not compared are labelled: only what is about spending is applied."""
        self._only, self._seen = (Stop, ChangeBudget), None
        self.apply(loop)

    def end_remaining(self, loop: Loop) -> None:
        """They are labelled: now features are rejected too, and everything else waits until the run goes on."""
        self._only, self._seen = (Veto,), None
        self.apply(loop)

    def _set_budget(self, lines: Lines) -> None:
        marks = {mark.event: mark for mark in lines if isinstance(mark, AppliedMark)}
        texts = [self._settings_budget] + [
            str(command.usd)
            for number, command in enumerate(lines)
            if isinstance(command, ChangeBudget) and not self._is_over(number, command, marks.get(number))
        ]
        self._ledger.set_budget(micro(Decimal(texts[-1])) if texts[-1] else None)

    def _is_over(self, number: int, command: ControlCommand, mark: AppliedMark | None) -> bool:
        """A stop of an earlier execution, or a budget instead of one that the settings do not have any more."""
        if isinstance(command, Stop):
            return number < self._before
        return isinstance(command, ChangeBudget) and mark is not None and mark.instead_of != self._settings_budget

    def _is_due(self, number: int, command: ControlCommand, mark: AppliedMark | None, loop: Loop) -> bool:
        """What nothing can be asked for any more waits until the run goes on; it is marked at once, so that the run is
        the same again and does not apply it earlier."""
        at_once = isinstance(command, Stop | ChangeBudget)
        if self._only:
            if mark is None and not at_once and not isinstance(command, Veto):
                self._mark(number, command, loop)
            return isinstance(command, self._only) and (mark is None or mark.queries <= loop.progress.queries)
        if mark is not None and mark.while_labelling:
            return loop.progress.queries > mark.queries  # there are more questions now than there were
        if loop.progress.queries < (mark.queries if mark else 0 if at_once else self._reached):
            return False
        stopped = loop.progress.stopped is not None and not isinstance(command, Stop | Veto | ChangeBudget)
        if not stopped and (not isinstance(command, AskAbout) or loop.can_ask()):
            return True
        if mark is None and not at_once:
            self._mark(number, command, loop)
        return False

    def _mark(self, number: int, command: ControlCommand, loop: Loop) -> AppliedMark:
        instead_of = self._settings_budget if isinstance(command, ChangeBudget) else ""
        queries = loop.progress.queries
        mark = AppliedMark(event=number, queries=queries, instead_of=instead_of, while_labelling=bool(self._only))
        self._write(mark)
        return mark

    def _apply(self, number: int, command: ControlCommand, mark: AppliedMark | None, loop: Loop) -> None:
        """The mark comes first: an answer may come tomorrow, and the question is asked at this place again."""
        mark, rejected = mark or self._mark(number, command, loop), ""
        self._gone[number] = ""
        try:
            self._gone[number] = self._do(command, loop)
        except CommandRejected as reason:
            rejected = str(reason)
        usd = str(command.usd) if isinstance(command, ChangeBudget) else ""
        self._events.emit(CommandApplied(command.action, command.by, command.words, rejected, usd))
        self.applied.append(
            SteeredBy(
                after=mark.queries,
                rejected=rejected,
                action=command.action,
                by=command.by,
                at=command.at,
                words=command.words,
            )
        )

    def _do(self, command: ControlCommand, loop: Loop) -> str:
        """The feature that the results no longer have, if any. Raises CommandRejected."""
        match command:
            case Stop():
                if not loop.progress.waiting:  # else what was named and paid for is labelled first
                    self._ledger.halt()
                loop.stop()
            case Veto():
                return loop.reject_feature(command.name, command.by)
            case AddFeature():
                loop.add_feature(command.name, command.definition, command.by)
            case AskAbout():
                loop.ask_about(command.examples)
            case ChangeBudget():  # the ledger has it already
                pass
        return ""

    def record(self) -> None:
        """Once the run folder is written: vetoed features are dropped from it as curation does, by whoever wanted it;
        what was recorded before is not done again."""
        lines = self._lines()
        recorded = {mark.event for mark in lines if isinstance(mark, RecordedMark)}
        for number, name in sorted(self._gone.items()):
            command = lines[number]
            if not name or number in recorded or not isinstance(command, Command):
                continue
            run = Run(self._folder)
            with suppress(RunError):  # changed by hand in the meantime
                record_change(run, plan_change(run, "drop", {"names": [name]}), by=command.by)
            self._write(RecordedMark(event=number))

    def _write(self, line: AppliedMark | RecordedMark) -> None:
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
