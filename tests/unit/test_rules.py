"""Rules of the code that neither ruff nor the contracts of import-linter in pyproject.toml can express."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.question_path import PACKAGES, ROOT

FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def place(path: Path, node: ast.expr | ast.stmt) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node).splitlines()[0]}"


@cache
def face(folder: Path) -> frozenset[str]:
    """The names that `__init__.py` takes from the modules of its folder; none: the folder has no face."""
    path = folder / "__init__.py"
    package = ".".join(("twothirds", *folder.relative_to(ROOT).parts))
    imports = [node for node in nodes(path) if isinstance(node, ast.ImportFrom)] if path.exists() else []
    return frozenset(
        alias.asname or alias.name
        for node in imports
        if (node.module or "").startswith(f"{package}.")
        for alias in node.names
    )


def passes_the_face(path: Path, module: str, name: str = "") -> bool:
    """Whether a file imports what lies behind the face of another folder, or the face of a folder it lies in."""
    target = ROOT.joinpath(*module.removeprefix("twothirds.").split("."))
    if target.is_dir():
        offered = face(target)
        if target in path.parents:
            return name in offered
        return bool(offered) and name not in offered and (target / f"{name}.py").exists()
    return target.with_suffix(".py").exists() and target.parent not in path.parents and bool(face(target.parent))


def imported(path: Path) -> Iterator[tuple[ast.stmt, str, str]]:
    """(statement, module, name) of all imports, those inside functions and for type checkers too."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node, node.module, alias.name) for alias in node.names)


def test_other_folders_are_used_through_their_faces() -> None:
    """And no module uses the face of its own folder: with the contract on siblings, no modules import each other."""
    imports = [(path, *found) for path in FILES for found in imported(path)]
    wrong = [place(path, node) for path, node, module, name in imports if passes_the_face(path, module, name)]
    assert not wrong, "\n".join(wrong)


def starred_tuples(path: Path) -> Iterator[str]:
    """Calls of the program's own classes, `Thing(*row, …)` and `cls(*row, …)`."""
    of_others = {name for _, module, name in imported(path) if module.partition(".")[0] != "twothirds"}
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            is_ours = name == "cls" or (name.lstrip("_")[:1].isupper() and name not in of_others)
            starred = [argument.value for argument in node.args if isinstance(argument, ast.Starred)]
            if is_ours and any(isinstance(value, ast.Name | ast.Attribute) for value in starred):
                yield place(path, node)


def test_no_starred_tuple_in_a_constructor_call() -> None:
    """With one more value in the tuple, all that follow would land in other fields."""
    wrong = [line for path in FILES for line in starred_tuples(path)]
    assert not wrong, "\n".join(wrong)


def holds_attributes(node: ast.expr) -> bool:
    """`vars(thing)` or `thing.__dict__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def test_attributes_are_set_by_name() -> None:
    """Neither `vars(thing)["name"] = …` nor `thing.__dict__["name"] = …`."""
    subscripts = [(path, node) for path in FILES for node in nodes(path) if isinstance(node, ast.Subscript)]
    written = [(path, node) for path, node in subscripts if not isinstance(node.ctx, ast.Load)]
    wrong = [place(path, node) for path, node in written if holds_attributes(node.value)]
    assert not wrong, "\n".join(wrong)


def test_datasets_hold_data_only() -> None:
    assert not list((ROOT / "datasets").rglob("__init__.py"))
