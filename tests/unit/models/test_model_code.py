"""Code that comes with a model is never run, and nobody is asked whether to run it."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.asking import ask
from twothirds.models.contrastive.oracle import ContrastiveOracle
from twothirds.models.local import LocalVlmConfig, LocalVlmOracle, ModelFiles, pretrained
from twothirds.models.oracle import Feature, Label, OracleUnavailable
from twothirds.models.predicted.embedders import embedder_of
from twothirds.sources import Example

ROOT = Path(__file__).parents[3]
PROGRAM = ("discovery", "flows", "models", "reports", "sources", "store", "studio", "tasks")
AUTO_MAP = {
    "AutoConfig": "evil.Config",
    "AutoModel": "evil.Model",
    "AutoModelForCausalLM": "evil.Model",
    "AutoTokenizer": ["evil.Tokenizer", None],
    "AutoImageProcessor": "evil.Processor",
}
TEXT = Example("a", "a", "A hat.")


@pytest.fixture(autouse=True)
def says_yes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The terminal answers yes to whatever it is asked; returns what it was asked."""
    prompts: list[str] = []

    def answer(prompt: str = "") -> str:
        prompts.append(prompt)
        return "y"

    monkeypatch.setattr(builtins, "input", answer)
    return prompts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a model whose code leaves a mark when it is imported."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": AUTO_MAP}))
    (model / "evil.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\nclass Config: pass\n")
    return model


def asks_vlm(folder: Path) -> None:
    list(ask(LocalVlmOracle(LocalVlmConfig(model=str(folder))), [Label(Feature("hat", "A hat."), TEXT)]))


def asks_contrastive(folder: Path) -> None:
    ContrastiveOracle(str(folder))


def embeds(folder: Path) -> None:
    embedder_of(str(folder), [TEXT], None)


def embeds_contrastive(folder: Path) -> None:
    embedder_of(f"contrastive:{folder}", [TEXT], None)


@pytest.mark.parametrize("use", [asks_vlm, asks_contrastive, embeds, embeds_contrastive])
def test_a_folder_with_code_is_refused_in_one_line(
    folder: Path, use: Callable[[Path], None], says_yes: list[str]
) -> None:
    with pytest.raises(OracleUnavailable, match="'model' comes with code of its own, which is never run") as refused:
        use(folder)
    assert "\n" not in str(refused.value)
    assert not (folder.parent / "mark").exists()
    assert says_yes == []


@pytest.mark.parametrize("name", ["AutoConfig", "AutoModel", "AutoTokenizer", "AutoImageProcessor"])
def test_a_model_that_needs_its_code_is_refused_whatever_loads_it(folder: Path, name: str, says_yes: list[str]) -> None:
    """As a model of the hub, whose files are not looked at before they are loaded."""
    import transformers

    for config in ("tokenizer_config.json", "preprocessor_config.json"):
        (folder / config).write_text(json.dumps({"auto_map": AUTO_MAP}))
    files = ModelFiles(name="owner/model", location=str(folder), revision=None, version="1")
    with pytest.raises(OracleUnavailable, match="'owner/model' comes with code of its own"):
        pretrained(getattr(transformers, name), files)
    assert not (folder.parent / "mark").exists()
    assert says_yes == []


def test_one_function_calls_from_pretrained() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in PROGRAM
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "from_pretrained")
        or (isinstance(node, ast.Constant) and node.value == "from_pretrained")
    ]
    assert found == ["models/local/files.py"]
