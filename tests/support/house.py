"""The layout of the code as figures: `python -m tests.support.house` prints the table of docs/architecture.md."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
PACKAGES = ("flows", "tasks", "models", "studio", "reports", "store", "discovery", "sources")
MOST_ENTRIES = 14
FOR_USERS = {  # called from notebooks, or named in prefect.yaml
    *("Run", "compare_flow", "discover", "discover_flow", "enrich", "enrich_flow", "nightly_flow", "rediscover_flow"),
}


@cache
def code_files() -> dict[str, Path]:
    """The modules of the program by name; a package by the name of its folder."""
    return {_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def is_package(module: str) -> bool:
    return code_files()[module].name == "__init__.py"


def folder_of(module: str) -> str:
    """The package that a module lies in; a package lies in itself."""
    return module if is_package(module) else module.rpartition(".")[0]


@cache
def imported(module: str) -> frozenset[tuple[str, str]]:
    """(module, name) of every import of our own code, inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(code_files()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names if alias.name in code_files()}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            offered = names_offered(node.module) if node.module != module else frozenset()
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in code_files() and alias.name not in offered:
                    found.add((submodule, ""))
                elif node.module in code_files():
                    found.add((node.module, alias.name))
    return frozenset(found)


@cache
def homes_of_names(package: str) -> dict[str, str]:
    """The names that the face of a package takes from its modules, and from which."""
    if package not in code_files() or not is_package(package):
        return {}
    tree = ast.parse(code_files()[package].read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}.")
        for alias in node.names
    }


def names_offered(package: str) -> frozenset[str]:
    return frozenset(homes_of_names(package))


def past_the_face(module: str) -> list[str]:
    """Imports that reach into another folder, or into the face of a folder that the module itself lies in."""
    home = folder_of(module)
    wrong = []
    for target, name in sorted(imported(module)):
        folder = folder_of(target)
        within = f"{home}.".startswith(f"{folder}.")
        if within and is_package(target) and target != module and name in names_offered(target):
            wrong.append(f"{target} ({name}): the face of its own folder")
        if not within and not is_package(target):
            wrong.append(f"{target} ({name}): import it from {folder}")
    return wrong


def unused_in_face(package: str) -> list[str]:
    """Names that a face offers and nothing outside the folder imports; flows are for Prefect and users as well."""
    used = {name for module in code_files() for target, name in imported(module) if target == package}
    return sorted(names_offered(package) - used - FOR_USERS)


def import_cycles() -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    graph = {module: {target for target, _ in imported(module)} - {module} for module in code_files()}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in graph[module]:
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            group = [stack.pop()]
            while group[-1] != module:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in index:
            visit(module)
    return found


def entries() -> dict[str, int]:
    """Modules and packages in each package, its face and its door (`__main__`) not counted."""
    count: dict[str, int] = defaultdict(int)
    for module in code_files():
        if "." in module and not module.endswith(".__main__"):
            count[module.rpartition(".")[0]] += 1
    return dict(count)


def homes_of_classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in code_files().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return dict(found)


def importers() -> dict[str, set[str]]:
    """Which modules use which, through faces or not."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in code_files():
        for target, name in imported(module) if not is_package(module) else ():
            while target in code_files() and name in homes_of_names(target):
                target = homes_of_names(target)[name]
            found[target].add(module)
    return found


def lines_of_code() -> int:
    """All Python that is tracked, without tests and the builders of data sets."""
    command = ["git", "ls-files", "*.py", ":!tests", ":!datasets"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sum(_lines(ROOT / file) for file in files)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def figures() -> Iterator[tuple[str, str]]:
    lengths = [_lines(path) for path in code_files().values() if path.name != "__init__.py"]
    single = [module for module, by in importers().items() if len(by) == 1 and not is_package(module)]
    yield "entries in a folder (median, most)", _spread(entries().values())
    yield "lines in a file (median, most)", _spread(lengths)
    yield "files with one importer", str(len(single))
    yield "class names with several homes", str(sum(len(homes) > 1 for homes in homes_of_classes().values()))
    yield "import cycles", str(len(import_cycles()))
    yield "lines of code without tests", f"{lines_of_code():,}"


def _spread(values: Iterable[int]) -> str:
    counted = list(values)
    return f"{median(counted):g}, {max(counted)}"


if __name__ == "__main__":
    for name, value in figures():
        print(f"{name}: {value}")
