"""A steered run follows from data, settings, seed, answers and the log of commands: killed or not, with people or
models, on all kinds of terms and in any store."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as some

from tests.support.growing_worlds import World
from tests.support.people import TruthfulPerson
from tests.support.steered_runs import TRAITS, Killed, discovered, kill, settings, wishing
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models import AnswersPending
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset
from twothirds.store import Store

WATCHED_REST = "twothirds.flows.discover.control.LOOK_SECONDS"

IDS = [f"e{number:06}" for number in range(24)]
COMMANDS = some.one_of(
    some.builds(lambda name: {"action": "veto", "name": name}, some.sampled_from(TRAITS)),
    some.builds(lambda name: {"action": "add", "name": name}, some.sampled_from([*TRAITS, "sweet"])),
    some.builds(
        lambda ids: {"action": "ask", "examples": ids},
        some.lists(some.sampled_from(IDS), min_size=3, max_size=3, unique=True),
    ),
    some.just({"action": "budget", "usd": "9"}),
)
KINDS: list[dict[str, Any]] = [
    {},
    {"profile": Profile(labels_after=3, features=2)},
    {"profile": Profile(labels_after=None, features=8, widest=3)},
    {"voters": 2},
    {"profile": Profile(features=3), "ask_same": True},
    {"elicit_on": 12, "label_rest": True},
    {"elicit_on": 12, "agree": 0.9},
    {"strategy": "adaptive-triple"},
    {"labeller": "simulated?seed=9&flip=0.2", "votes": 3},
]


def same(one: Run, other: Run) -> bool:
    """In all that a reader of the results sees."""
    one, other = Run(one.folder), Run(other.folder)
    return (
        one.features.equals(other.features)
        and one.labels.equals(other.labels)
        and [c.examples for c in one.findings.comparisons] == [c.examples for c in other.findings.comparisons]
        and [(s.after, s.words, s.rejected) for s in one.summary.steered]
        == [(s.after, s.words, s.rejected) for s in other.summary.steered]
    )


def from_log(chosen: DiscoverSettings, other: Path, profile: Profile | None = None) -> Run:
    """The same run in another folder, of which nothing is known but the log."""
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir(parents=True)
    log = Path(str(chosen.out)) / "steer.jsonl"
    if log.exists():
        kept = [line for line in log.read_text().splitlines() if '"settled"' not in line]
        (other / "steer.jsonl").write_text("".join(f"{line}\n" for line in kept))
    return discovered(chosen.model_copy(update={"out": str(other)}), profile=profile)


def check_kills(kind: dict[str, Any], commands: dict[int, dict[str, Any]], kills: list[int]) -> None:
    with TemporaryDirectory() as name:
        world = World(Path(name) / "world", 24, TRAITS)
        kind = dict(kind)
        profile = kind.pop("profile", None)
        chosen = settings(world, queries=8, budget="5", **kind)
        folder = Path(str(chosen.out))
        todo = {number: wishing(folder, **command) for number, command in commands.items()}
        for number in kills:
            entered = {at: todo.pop(at) for at in [*todo] if at < number}
            try:
                discovered(chosen, entered | {number: kill}, profile=profile)
                todo = {}  # it had fewer rounds than that
                break
            except Killed:
                pass
        run = discovered(chosen, todo, profile=profile)
        again = from_log(chosen, folder.parent / "again", profile)
        assert same(run, again)
        assert again.summary.paid_calls == 0, "nothing is asked that the first had not asked"


def test_a_run_that_is_killed_among_wishes_of_all_kinds_is_the_same_again() -> None:
    commands: dict[int, dict[str, Any]] = {
        1: {"action": "add", "name": "wet"},
        2: {"action": "ask", "examples": IDS[:3]},
        3: {"action": "veto", "name": "red"},
        5: {"action": "veto", "name": "heavy"},
        6: {"action": "budget", "usd": "9"},
    }
    check_kills({}, commands, [4, 3, 6])
    check_kills({"profile": Profile(labels_after=4, features=2)}, commands, [5])
    check_kills({"profile": Profile(labels_after=None, features=8)}, commands, [5])


def test_a_question_that_comes_too_late_waits_in_every_repetition() -> None:
    check_kills({"voters": 3}, {3: {"action": "ask", "examples": IDS[:3]}}, [])


def check_rest(kind: dict[str, Any], commands: dict[int, dict[str, Any]], killed_at: int | None) -> None:
    """Wishes by the number of the answer about an example that was not compared."""
    with TemporaryDirectory() as name:
        world = World(Path(name) / "world", 60, TRAITS)
        chosen = settings(world, queries=5, budget="5", **kind)
        folder = Path(str(chosen.out))
        todo = {number: wishing(folder, **command) for number, command in commands.items()}

        def act(number: int) -> None:
            todo.pop(number, lambda: None)()
            if number == killed_at:
                kill()

        try:
            run = discovered(chosen, while_labelling=act)
        except Killed:
            run = discovered(chosen, while_labelling=lambda number: todo.pop(number, lambda: None)())
        again = from_log(chosen, folder.parent / "again")
        assert same(run, again)
        assert again.summary.paid_calls == 0, "nothing is asked that the first had not asked"


@pytest.mark.parametrize("kind", [{"label_rest": True}, {"agree": 0.9}], ids=lambda kind: next(iter(kind)))
def test_a_run_that_is_steered_while_the_rest_is_labelled_is_the_same_again(
    kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WATCHED_REST, 0)
    commands: dict[int, dict[str, Any]] = {
        3: {"action": "veto", "name": TRAITS[0]},
        7: {"action": "add", "name": "wet"},
        9: {"action": "budget", "usd": "0.3"},
    }
    check_rest({"elicit_on": 12} | kind, commands, 20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{"label_rest": True}, {"agree": 0.9}], ids=lambda kind: next(iter(kind)))
@examples(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    commands=some.dictionaries(some.integers(1, 40), COMMANDS, min_size=1, max_size=4),
    usd=some.sampled_from(["9", "0.3", "0.2"]),
    at=some.integers(1, 40),
    killed_at=some.none() | some.integers(1, 60),
)
def test_wishes_while_the_rest_is_labelled_give_the_same_run_again(
    kind: dict[str, Any], commands: dict[int, dict[str, Any]], usd: str, at: int, killed_at: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WATCHED_REST, 0)
        check_rest({"elicit_on": 12} | kind, commands | {at: {"action": "budget", "usd": usd}}, killed_at)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind) or "auto")
@examples(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    commands=some.dictionaries(some.integers(1, 6), COMMANDS, min_size=1, max_size=4),
    kills=some.lists(some.integers(1, 8), max_size=2),
)
def test_kills_change_nothing_and_the_log_gives_the_same_run(
    kind: dict[str, Any], commands: dict[int, dict[str, Any]], kills: list[int]
) -> None:
    check_kills(kind, commands, kills)


def test_a_run_that_waits_for_people_is_steered_between_its_attempts(tmp_path: Path, store_url: str) -> None:
    world = World(tmp_path / "world", 6, TRAITS)
    chosen = settings(world, oracle="human", queries=3, store=store_url)
    folder, attempts, run = Path(str(chosen.out)), 0, None
    with Store.open(store_url) as store:
        person = TruthfulPerson(store.queue, "Bob", load_dataset(world.spec))
        while run is None:
            attempts += 1
            if attempts == 2:
                wishing(folder, action="add", name="wet")()
                wishing(folder, action="ask", examples=[*world.texts][:3])()
            try:
                run = discovered(chosen)
            except AnswersPending:
                while person.answer_page():
                    pass
        answered = len([*store.queue.records.answers()])
        assert same(run, from_log(chosen, folder.parent / "again"))
        assert len([*store.queue.records.answers()]) == answered, "nobody was asked anything again"
    assert run.features.set_index("name").loc["wet", "added_by"] == "Ann"
    assert [*world.texts][:3] in [list(one.examples) for one in run.findings.comparisons]
