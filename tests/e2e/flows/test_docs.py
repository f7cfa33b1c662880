"""The commands of the docs are run in the order in which a reader meets them, and every option is on a page."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.support.command_line import options_of
from tests.support.fake_openai import Failings, LifelikeServer
from tests.support.filled_stores import keep
from twothirds.flows.cli.app import main
from twothirds.sources import load_dataset
from twothirds.store import Store

ROOT = Path(__file__).parents[3]
FACES = ROOT / "datasets" / "faces"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
Printed = pytest.CaptureFixture[str]


def page_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def correct(table: Path) -> None:
    """What the page tells its reader to do in an editor: a row with a correction."""
    rows = pd.read_csv(table, dtype=object)
    rows.loc[len(rows), ["id", "feature"]] = ["face-007", "smile"]
    rows.loc[rows.index[-1], "corrected"] = "no"
    rows.to_csv(table, index=False)


def run_block(kind: str, text: str) -> None:
    if kind == "python":
        exec(compile(text, "docs", "exec"), {})
        return
    for line in text.splitlines():
        words = shlex.split(line)
        assert words[0] == "twothirds", line
        if words[3:4] == ["import"]:
            correct(Path(words[4]))
        assert main(words[1:]) == 0, line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_the_commands_of_report_and_export_work(here: Path, capsys: Printed) -> None:
    for name in ("report.md", "export.md"):
        for kind, text in BLOCK.findall(page_of(name)):
            run_block(kind, text)
    printed = capsys.readouterr().out
    assert "discovered features" in printed
    assert "nothing was changed" in printed
    assert (here / "runs" / "faces" / "export" / "imagefolder" / "metadata.csv").exists()
    assert (here / "exported" / "huggingface" / "README.md").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_the_commands_of_enrich_work(here: Path, capsys: Printed) -> None:
    for kind, text in BLOCK.findall(page_of("enrich.md")):
        run_block(kind, text)
    printed = capsys.readouterr().out
    assert "100 added, 0 unchanged; 100 rows" in printed
    assert "proposals.csv" in printed
    table = pd.read_parquet(here / "enriched" / "two" / "labels.parquet")
    assert list(table.columns) == ["id", "digest", "version", "glasses", "smile"]


@pytest.mark.usefixtures("here")
def test_the_commands_of_store_work(capsys: Printed) -> None:
    with Store.open("answers.sqlite") as store:
        keep(store, 30)
    blocks = [text for language, text in BLOCK.findall(page_of("store.md")) if language == "sh"]
    assert len("".join(blocks).splitlines()) == 6
    for text in blocks:
        run_block("sh", text)
    assert capsys.readouterr().out.splitlines()[-1].startswith("store restored.sqlite: 30 answers; every key")
    with Store.open("restored.sqlite") as store:
        assert keep(store, 30).ledger.paid_calls == 0


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("prefect_url")
def test_the_commands_of_the_tutorial_lead_to_a_classifier(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    """Against a lifelike model server, on pictures without truth."""
    (here / "photos").mkdir()
    for picture in sorted(FACES.rglob("*.png")):
        shutil.copy(picture, here / "photos")
    with LifelikeServer(load_dataset(str(FACES)), Failings()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        blocks = BLOCK.findall(page_of("tutorial.md"))
        run_block(*blocks[0])
        assert server.requests == [], "an estimate sends nothing"
        for kind, text in blocks[1:]:
            run_block(kind, text)
    printed = capsys.readouterr().out
    assert re.search(r"likely [\d.]+ USD .*at most", printed)
    [accuracy] = re.findall(r"balanced accuracy ([\d.]+) on 30 pictures that were held out", printed)
    assert float(accuracy) > 0.6  # chance is 0.5
    assert len(list((here / "labels").glob("labels.*"))) >= 1


@pytest.mark.parametrize(
    ("commands", "pages"),
    [
        ("report export tree features", "report.md export.md discover.md"),
        ("enrich", "enrich.md predicted.md scaling.md discover.md"),
        ("compare", "compare.md"),
        ("review", "review.md"),
    ],
)
def test_every_option_is_on_a_page(commands: str, pages: str) -> None:
    text = "".join(page_of(name) for name in pages.split())
    for command in commands.split():
        for option in options_of(command):
            assert option in text, f"{command} {option} is on no page"
