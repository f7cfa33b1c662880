"""Texts that no ordinary text looks like: each is an example or is set aside in one line, and what is kept goes through
discovery, the run folder and the report without a loss."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset
from twothirds.sources.printable import printable

KEPT = {
    "nul": "a\0b",
    "half": "a\ud800b",
    "long": "word " * 200_000,
    "turned": "\u202eevil\u202c and \u2066more\u2069",
    "bom": "\ufeffwith a mark",
    "script": "</script><script>alert('marked')</script>",
    "html": '<img src=x onerror="alert(1)">&amp;',
    "lines": "a\r\nb\u2028c\x0bd",
    "emoji": "👩‍👩‍👧 \U000e0041",
    "formula": '=HYPERLINK("http://x","y")',
    "template": "{{ 7 * 7 }} {% raw %} ${x}",
    "combining": "Z͑ͫ̓ͪ" * 50,
    "number": "12",
}
SET_ASIDE = {"white": " \t\n\u00a0", "nothing": ""}


def test_texts_of_every_kind_go_through_a_whole_discovery(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    rows = [{"id": name, "text": text} for name, text in (KEPT | SET_ASIDE).items()]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    rng = np.random.default_rng(0)
    truth = pd.DataFrame(rng.integers(0, 2, (len(KEPT), 5)), columns=list("abcde"))
    truth.insert(0, "id", list(KEPT))
    truth.to_csv(tmp_path / "truth.csv", index=False)
    data = load_dataset(str(path))
    assert {one.id: one.text for one in data.examples} == KEPT
    assert {one.id: one.reason for one in data.quarantined} == dict.fromkeys(SET_ASIDE, "empty text")
    settings = DiscoverSettings(
        dataset=str(path), oracle="simulated", queries=4, store=str(tmp_path / "s.sqlite"), out=str(tmp_path / "run")
    )
    run_discovery(prepare(settings), run_id="run")
    run = Run(tmp_path / "run")
    assert list(run.labels.index) == list(KEPT)
    assert not run.labels.isna().any().any()
    page = run.report(dataset=data).path.read_bytes().decode("utf-8")
    assert "<script>alert('marked')" not in page
    assert "<img src=x" not in page


def test_tables_in_other_encodings_are_read_or_reported_on_one_line(tmp_path: Path) -> None:
    from twothirds.sources.errors import DatasetError

    table = "id,text\r\na,Äpfel\r\nb,Birnen\r\n"
    read, refused = set(), set()
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(table.encode(encoding, "replace"))
        try:
            examples = load_dataset(str(path)).examples
        except DatasetError as error:
            refused.add(encoding)
            line = str(error)
            assert printable(line) == line
            assert encoding in line
        else:
            read.add(encoding)
            assert examples[-1].text == "Birnen"
            assert all("\0" not in (one.text or "") and one.id in ("a", "b") for one in examples)
    assert {"utf-8", "utf-8-sig"} <= read
    assert read | refused == {"utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis"}
