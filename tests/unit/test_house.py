"""The house: imports go down and through faces, no circles, folders of a dozen, one home for each class."""

from __future__ import annotations

import ast

import pytest

from tests.support.house import (
    MOST_ENTRIES,
    ROOT,
    code_files,
    entries,
    homes_of_classes,
    import_cycles,
    imported,
    is_package,
    past_the_face,
    unused_in_face,
)

MAY_IMPORT = {
    "discovery": set(),
    "sources": set(),
    "store": set(),
    "reports": {"sources", "discovery"},
    "models": {"sources", "discovery", "store"},
    "studio": {"reports", "store", "sources", "discovery"},
    "tasks": {"models", "store", "reports", "sources", "discovery"},
    "flows": {"tasks", "models", "store", "reports", "studio", "sources", "discovery"},
}
HEAVY = {"torch", "transformers", "openai", "pandas", "scipy", "sklearn"}


@pytest.mark.parametrize("module", code_files())
def test_imports_go_down_only(module: str) -> None:
    package = module.partition(".")[0]
    upwards = {target.partition(".")[0] for target, _ in imported(module)} - MAY_IMPORT[package] - {package}
    assert not upwards


@pytest.mark.parametrize("module", code_files())
def test_other_folders_are_used_through_their_faces(module: str) -> None:
    assert past_the_face(module) == []


@pytest.mark.parametrize("package", [module for module in code_files() if is_package(module)])
def test_a_face_offers_only_what_others_use(package: str) -> None:
    assert unused_in_face(package) == []


def test_no_modules_import_each_other() -> None:
    assert import_cycles() == []


def test_no_folder_is_a_drawer() -> None:
    assert {folder: count for folder, count in entries().items() if count > MOST_ENTRIES} == {}


def test_a_class_has_one_home() -> None:
    assert {name: homes for name, homes in homes_of_classes().items() if len(homes) > 1} == {}


@pytest.mark.parametrize("module", code_files())
def test_heavy_packages_are_imported_where_they_are_used(module: str) -> None:
    body = ast.parse(code_files()[module].read_text(encoding="utf-8")).body
    names = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in body if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    assert not {name.partition(".")[0] for name in names} & HEAVY


def test_datasets_hold_data_only() -> None:
    assert not list((ROOT / "datasets").rglob("__init__.py"))
