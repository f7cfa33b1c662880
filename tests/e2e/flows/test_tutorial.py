"""Every command of docs/tutorial.md is run, against a lifelike model server, on pictures without truth."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sources import load_dataset
from tests.e2e.flows.runs.test_docs import blocks_of, run_block
from tests.support.fake_openai import Failings, LifelikeServer

ROOT = Path(__file__).parents[3]
FACES = ROOT / "datasets" / "faces"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_commands_of_the_tutorial_lead_to_a_classifier(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prefect_url
    monkeypatch.chdir(tmp_path)
    faces = load_dataset(str(FACES))
    (tmp_path / "photos").mkdir()
    for picture in sorted(FACES.rglob("*.png")):
        shutil.copy(picture, tmp_path / "photos")
    with LifelikeServer(faces, Failings()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        blocks = blocks_of("tutorial.md")
        run_block(*blocks[0])
        assert server.requests == [], "an estimate sends nothing"
        for kind, text in blocks[1:]:
            run_block(kind, text)
    printed = capsys.readouterr().out
    assert re.search(r"likely [\d.]+ USD .*at most", printed)
    [accuracy] = re.findall(r"balanced accuracy ([\d.]+) on 30 pictures that were held out", printed)
    assert float(accuracy) > 0.6  # chance is 0.5
    assert len(list((tmp_path / "labels").glob("labels.*"))) >= 1
