"""The help of every command: quick, plain where it is piped, in groups, with an example; what the parser refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import commands, options_of
from tests.support.timed import timed
from twothirds.flows import VERSION
from twothirds.flows.cli.app import COMMANDS, WITH_ACTIONS, main
from twothirds.flows.cli.options import GROUPS

ROOT = Path(__file__).parents[4]
HEAVY = {"torch", "transformers", "openai", "prefect", "pandas", "sqlalchemy"}
Printed = pytest.CaptureFixture[str]


def loaded_by(*words: str) -> tuple[str, set[str], float]:
    """What a command prints, the modules it has loaded, and the seconds of computing it takes."""
    code = f"import sys; from twothirds.flows.cli.app import main; main({list(words)!r}); "
    code += "print(*sys.modules, file=sys.stderr)"
    done = timed([sys.executable, "-c", code], ROOT)
    assert done.status == 0, done.stderr
    return done.stdout, set(done.stderr.split()), done.seconds


def test_the_help_of_everything_loads_no_command() -> None:
    printed, modules, _ = loaded_by("--help")
    assert not modules & (
        HEAVY | {"numpy", "pydantic", *(f"twothirds.flows.cli.{module}" for module, _, _ in COMMANDS.values())}
    )
    for name, (_, about, _) in COMMANDS.items():
        assert name in printed
        assert about.split()[0] in printed


def test_the_help_of_everything_takes_less_than_half_a_second() -> None:
    assert min(loaded_by("--help")[2] for _ in range(5)) < 0.5


@pytest.mark.parametrize(
    "command", ["discover", "estimate", "enrich", "compare", "review", "store", "costs", "features"]
)
def test_the_help_of_a_command_loads_nothing_heavy(command: str) -> None:
    printed, modules, _ = loaded_by(command, "--help")
    assert not modules & HEAVY
    assert "example: twothirds " + command in printed


@pytest.mark.parametrize(
    "words",
    [
        ("estimate", "discover", "datasets/zoo", "--oracle", "simulated"),
        ("estimate", "enrich", "datasets/zoo", "--oracle", "simulated", "--features", "tail: it has a tail"),
        ("estimate", "compare", "datasets/zoo", "--oracles", "simulated", "--oracles", "simulated?flip=0.1"),
        ("costs",),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_starts_no_run_loads_no_prefect(words: tuple[str, ...], tmp_path: Path) -> None:
    _, modules, _ = loaded_by(*words, "--store", str(tmp_path / "store.sqlite"))
    assert "prefect" not in modules


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example_and_the_common_options(words: tuple[str, ...], capsys: Printed) -> None:
    assert main([*words, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"example: twothirds {words[0]}" in " ".join(printed.split())
    assert not set("│╭╰\x1b") & set(printed), "piped help is plain text"
    if len(words) > 1 or words[0] not in {"store", "features", "labels", "steer"}:
        assert {"--json", "--debug"} <= set(printed.split())
    for option in options_of(*words) if len(words) > 1 or words[0] not in (*WITH_ACTIONS, "estimate") else ():
        assert option in printed


def test_actions_are_found_where_people_put_them(capsys: Printed) -> None:
    assert main(["features", "runs/faces", "merge", "--help"]) == 0
    one = capsys.readouterr().out
    assert main(["features", "merge", "--help"]) == 0
    assert one == capsys.readouterr().out
    assert "--into" in one
    assert "--keep" not in one


def test_an_action_may_follow_options(tmp_path: Path, capsys: Printed) -> None:
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert main(["review", *store, "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["store", "--json", *store, "check"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


@pytest.mark.parametrize("command", ["discover", "estimate"])
def test_options_are_in_groups_and_those_that_matter_come_first(command: str, capsys: Printed) -> None:
    assert main([command, "--help"]) == 0
    printed = capsys.readouterr().out
    titles = [line[:-1] for line in printed.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert [title for title in titles if title != "Commands"] == list(GROUPS)
    first = printed.partition("What is asked:")[0]
    words = ("DATASET", "--oracle", "--queries", "--budget", "--out")
    assert [place for place in map(first.find, words) if place >= 0] == sorted(map(first.find, words))


def test_every_grouped_option_is_a_setting_or_an_option_of_every_command() -> None:
    from twothirds.flows.compare.settings import CompareSettings
    from twothirds.flows.discover.settings import DiscoverSettings
    from twothirds.flows.enrich.settings import EnrichSettings

    models = (DiscoverSettings, EnrichSettings, CompareSettings)
    known = {name for model in models for name in model.model_fields} | {"config", "json", "debug"}
    assert {name for names in GROUPS.values() for name in names} <= known


def test_the_version_is_printed(capsys: Printed) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{VERSION}\n"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ([], "COMMAND is missing: choose one of discover, estimate"),
        (["dance"], "unknown command 'dance': choose one of discover, estimate"),
        (
            ["discover", "--querys", "3"],
            "unknown option --querys: did you mean --queries? see twothirds discover",
        ),
        (["discover", "a", "b"], "'b' is one word too many: see twothirds discover --help"),
        (["discover", "--oracle"], "--oracle needs a value: see twothirds discover --help"),
        (["discover", "--oracle", "--json"], "--oracle needs a value: see twothirds discover --help"),
        (["store"], "the action of store is missing: choose one of check, prune, settle, backup, restore"),
        (["store", "mend"], "unknown action 'mend': choose one of check, prune, settle, backup, restore"),
        (["store", "backup"], "FILE is missing: give the new file to write"),
        (["store", "check", "a"], "'a' is one word too many: see twothirds store check --help"),
        (["server", "--port", "x"], "--port 'x': give a whole number"),
        (["review", "--checks", "x"], "--checks 'x': give a number"),
        (["features", "runs/faces"], "the action of features is missing: choose one of list, rename"),
        (["oracles", "crystal-ball"], "unknown oracle 'crystal-ball': choose one of "),
        (["report", "r", "--by", "a", "--against", "b"], "--by and --against do not go together: leave one out"),
    ],
)
def test_what_the_parser_refuses_is_one_line(command: list[str], line: str, capsys: Printed) -> None:
    assert main(command) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {line}")
    assert printed.err.count("\n") == 1


def test_an_option_given_twice_counts_as_it_was_given_last(tmp_path: Path, capsys: Printed) -> None:
    faces = str(ROOT / "datasets" / "faces")
    words = ["estimate", faces, "--oracle", "simulated", "--store", str(tmp_path / "s.sqlite"), "--json"]
    assert main([*words, "--queries", "3", "--queries", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 5 * 101


@pytest.mark.parametrize("words", ["oracles", "oracles --json", "--help", "discover --help"])
def test_a_reader_who_goes_away_is_no_error(words: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "twothirds", *words.split()], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


class TestOracles:
    def test_every_kind_is_listed_with_what_each_parameter_means(self, capsys: Printed) -> None:
        from twothirds.flows.oracles import BUILDERS

        assert main(["oracles", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert set(listed) == set(BUILDERS)
        assert all(one["about"] and one["type"] for kind in listed.values() for one in kind["parameters"])
        assert "image_size" in {one["name"] for one in listed["openai"]["parameters"]}

    @pytest.mark.parametrize("kind", ["contrastive", "openai:m", "vlm:m", "human", "simulated"])
    def test_what_is_listed_is_what_the_oracle_takes(self, kind: str, tmp_path: Path, capsys: Printed) -> None:
        name = kind.partition(":")[0]
        assert main(["oracles", name, "--json"]) == 0
        listed = {one["name"] for one in json.loads(capsys.readouterr().out)[name]["parameters"]}
        faces, store = str(ROOT / "datasets" / "faces"), str(tmp_path / "s.sqlite")
        assert main(["estimate", faces, "--oracle", f"{kind}?zebra=1", "--store", store]) == 2
        taken = set(capsys.readouterr().err.strip().partition("choose among ")[2].split(", "))
        assert taken <= listed
        assert listed - taken <= {"price", "hourly", "seed"}

    def test_a_table_is_printed_for_one_kind(self, capsys: Printed) -> None:
        assert main(["oracles", "simulated"]) == 0
        printed = capsys.readouterr().out
        assert "simulated[:CROWD]" in printed
        assert "flip" in printed
        assert "openai:MODEL:" not in printed
