"""`review` and `discover --oracle human` as a person types them, and the commands of docs/review.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.made import few_faces
from tests.support.people import TruthfulPerson
from twothirds.flows.cli.app import build_app, main
from twothirds.sources.load import load_dataset
from twothirds.store import Store

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
WAITING = 75


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    return tmp_path


def test_a_discovery_by_people_ends_with_one_line_and_goes_on_when_run_again(
    prefect_url: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prefect_url
    few_faces(here / "faces", 24)
    command = ["discover", "faces", "--oracle", "human", "--queries", "1", "--store", "s.sqlite", "--out", "run"]
    dataset = load_dataset("faces")
    said = []
    for _ in range(2):
        assert main(command) == WAITING
        printed = capsys.readouterr()
        said.append(printed.err.splitlines()[-1])
        assert "Traceback" not in printed.err
        with Store.open("s.sqlite") as store:
            ann = TruthfulPerson(store.queue, "ann", dataset)
            while ann.answer_page():
                pass
    assert said == [
        "1 question waits for 1 vote: run `twothirds review`",
        f"{len(dataset.examples)} questions wait for 1 vote each: run `twothirds review`",
    ]
    assert main(command) == 0
    assert (here / "run" / "report.html").exists()


@pytest.mark.slow
def test_the_commands_of_the_page_work(prefect_url: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prefect_url
    (here / "checks.csv").write_text("feature,id,answer\nbeard,face-001,no\n", encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    ran = 0
    for line in "".join(blocks).splitlines():
        words = shlex.split(line)
        assert words[0] == "twothirds", line
        if words[1:] == ["review"] or "--host" in words:  # serves until it is ended: other tests do that
            build_app().parse_args(words[1:])
            continue
        asks_people = words[1] == "discover"
        assert main(words[1:]) == (WAITING if asks_people else 0), line
        ran += 1
    assert ran == 9
    printed = capsys.readouterr().out
    assert "http://127.0.0.1:8765/i/" in printed
    assert "Bob: 1 invitations revoked" in printed
    assert "1 attention checks in queue main" in printed
    assert "nothing was posted: add --yes to post it" in printed
    assert len((here / "answers.csv").read_text(encoding="utf-8").splitlines()) == 1, "nobody has answered yet"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("review dance", "unknown action 'dance': choose one of serve, invite"),
        ("review invite", "review invite takes the NAME of a person"),
        ("review invite Ann --days 0", "--days 0: an invitation lasts"),
        ("review invite ' '", "NAME ' ' is empty"),
        ("review revoke Zed", "nobody called 'Zed' has an invitation"),
        ("review withdraw Zed", "nobody called 'Zed' has answered"),
        ("review --checks 7", "--checks 7.0 is not a share"),
        ("review export /nowhere/at/all.csv", "cannot write /nowhere/at/all.csv"),
        ("review publish", "say where: --mturk"),
        ("review publish --mturk", "--cap is missing"),
        ("review publish --mturk --cap 5 --reward 0.001", "--reward 0.001: give whole cents"),
        ("review publish --mturk --cap many", "--cap 'many' is not a sum in USD"),
        ("review collect --bonus 0.001", "--bonus 0.001: give whole cents"),
        ("review checks datasets/zoo missing.csv", "cannot read missing.csv"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, said: str
) -> None:
    assert here
    assert main(shlex.split(command)) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert len(printed.splitlines()) == 1


def test_inviting_is_reported_as_json_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert here
    assert main(["review", "invite", "Ann", "Bob", "--base-url", "https://review.example.org", "--json"]) == 0
    assert '"Ann": "https://review.example.org/i/' in capsys.readouterr().out
