from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "discovery": set(),
    "sources": set(),
    "store": set(),
    "reports": {"sources", "discovery"},
    "models": {"sources", "discovery", "store"},
    "review": {"store", "sources"},
    "tasks": {"models", "store", "reports", "sources", "discovery"},
    "flows": {"tasks", "models", "store", "reports", "review", "sources", "discovery"},
}
HEAVY = {"torch", "transformers", "openai", "pandas", "scipy", "sklearn"}


def imported(path: Path, *, top_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", [name for name in MAY_IMPORT if (ROOT / name).exists()])
def test_imports_go_down_only(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        upwards = imported(path, top_level_only=False) & set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
        assert not upwards, f"{path.relative_to(ROOT)} imports {upwards}"


@pytest.mark.parametrize("package", [name for name in MAY_IMPORT if (ROOT / name).exists()])
def test_heavy_packages_are_imported_where_they_are_used(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        assert not imported(path, top_level_only=True) & HEAVY, path.relative_to(ROOT)


def test_datasets_hold_data_only() -> None:
    assert not list((ROOT / "datasets").rglob("__init__.py"))


def test_no_module_in_flows_has_the_name_of_a_package() -> None:
    import importlib.util
    import sys

    elsewhere = [entry for entry in sys.path if entry and not Path(entry).resolve().is_relative_to(ROOT / "flows")]
    for path in (ROOT / "flows").glob("*.py"):
        if not path.stem.startswith("__") and path.stem not in {"discover", "enrich", "compare", "replicate"}:
            found = importlib.machinery.PathFinder.find_spec(path.stem, elsewhere)
            assert found is None, f"flows/{path.name} hides the package {path.stem}"
