"""The notebook of the docs, run by a kernel as a reader would."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[4]
NOTEBOOK = ROOT / "docs" / "notebooks" / "from_pictures_to_a_model.ipynb"


def printed(notebook: nbformat.NotebookNode) -> str:
    """All that the cells show, as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join(texts)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_cell_runs_and_shows_what_its_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "datasets").mkdir()
    shutil.copytree(ROOT / "datasets" / "faces", tmp_path / "datasets" / "faces")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TWOTHIRDS_STORE", f"sqlite:///{tmp_path / 'store.sqlite'}")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)  # what it shows is what it shows today
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": os.fspath(tmp_path)}}).execute()
    shown = printed(notebook)
    assert "free of charge" in shown  # the estimate of the shipped model
    assert "likely 0." in shown  # and of one with a price
    assert "12/12 queries" in shown  # progress
    assert "(checked)" in shown
    assert "AUC 0." in shown or "AUC 1." in shown
    assert (tmp_path / "runs" / "notebook" / "export").is_dir()
    assert "contrastive:faces" in shown
