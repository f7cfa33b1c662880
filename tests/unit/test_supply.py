"""Every dependency is pinned, with a reason, and locked by hash; nothing is installed past the locks."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply.licences import agreed, page
from supply.lock import CUDA, DEV, ROOT, RUN, SCALE, TOOLS, TORCH, Locked, read_lock

LOCKS_OF = {
    "requirements.txt": (RUN, TORCH),
    "requirements-dev.txt": (DEV,),
    "requirements-scale.txt": (SCALE,),
    "supply/tools.txt": (TOOLS,),
}
INSTALL = ROOT / "supply" / "install.sh"


def locked(*paths: Path) -> list[Locked]:
    return [package for path in paths for package in read_lock(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("requirements", LOCKS_OF)
def test_what_is_required_is_pinned_with_a_reason_and_locked(requirements: str) -> None:
    found = {(package.name, package.version) for package in locked(*LOCKS_OF[requirements])}
    lines = (ROOT / requirements).read_text(encoding="utf-8").splitlines()
    for line in (line for line in lines if not line.startswith(("#", "-r "))):
        pin = re.fullmatch(r"([\w-]+)(?:\[\w+\])?==(\S+) +# \S.*", line)
        assert pin, f"{line}: one version, and why it is here"
        assert (canonicalize_name(pin[1]), pin[2]) in found, f"{line}: run `make lock`"


def test_versions_that_prefect_and_torch_need() -> None:
    versions = {package.name: package.version for package in locked(RUN, TORCH)}
    for pin in ("prefect==3.8.8", "fastapi<0.151", "sqlalchemy<2.1", "torch==2.13.0"):
        assert versions[Requirement(pin).name] in Requirement(pin).specifier


def test_locks_have_hashes_and_one_version_of_each_package() -> None:
    assert [package.name for package in locked(RUN, DEV, SCALE, TORCH, CUDA, TOOLS) if not package.hashes] == []
    names = {path: {package.name for package in locked(path)} for path in (RUN, TORCH, CUDA, DEV, SCALE)}
    assert len(names[RUN] | names[TORCH] | names[CUDA]) == len(names[RUN]) + len(names[TORCH]) + len(names[CUDA])
    assert (names[DEV] | names[SCALE]).isdisjoint(names[RUN] | names[TORCH] | names[CUDA])
    beside = {package for package in (*locked(DEV), *locked(SCALE)) if package.name in names[DEV] & names[SCALE]}
    assert beside <= set(locked(DEV)) & set(locked(SCALE))


def test_no_file_names_the_address_of_a_registry() -> None:
    named = [ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run", *LOCKS_OF)]
    files = [*named, *(path for path in (ROOT / "supply").iterdir() if path.is_file())]
    assert [path.name for path in files if re.search("://|index-url", path.read_text(encoding="utf-8"))] == []


def test_a_line_without_a_version_is_no_lock() -> None:
    with pytest.raises(ValueError, match="is no pinned requirement"):
        read_lock("a>=3\n")


def test_what_is_installed_is_what_is_locked_and_all_that_it_needs() -> None:
    versions: dict[str, set[str]] = {}
    for package in locked(RUN, DEV, TORCH):
        versions.setdefault(package.name, set()).add(package.version)
    for name in versions.keys() - {"setuptools"}:  # it comes with the environment
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # for another Python
            continue
        assert installed.version.partition("+")[0] in versions[name], f"{name}: run `make test`"
        for need in map(Requirement, installed.requires or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                fitting = need.specifier.filter(versions.get(canonicalize_name(need.name), ()), prereleases=True)
                assert list(fitting), f"{name}: {need}"


def test_pip_checks_hashes_and_never_builds() -> None:
    """A source package would run before its hash is checked."""
    for script in (INSTALL, ROOT / "supply" / "lock.py"):
        fetching = re.findall(r'pip["\s,]+(?:install|download).*', script.read_text(encoding="utf-8"))
        assert fetching
        assert all("--only-binary" in line for line in fetching)
        assert all("--require-hashes --no-deps" in line for line in fetching if "pip install" in line)
    assert "pip install" not in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_licences_are_agreed_to() -> None:
    assert page(RUN, TORCH, SCALE).count("\n| ") > 100
    for licence in ("MIT", "Apache-2.0 OR BSD-3-Clause", "LGPL-3.0-only", "Artistic-1.0-Perl OR GPL-2.0-or-later"):
        assert agreed(licence), licence
    for licence in ("GPL-3.0-only", "MIT AND AGPL-3.0-or-later", "GNU Affero General Public License v3", "unknown", ""):
        assert not agreed(licence), licence


@pytest.mark.parametrize("ci", ["", "true"])
def test_packages_of_the_system_are_installed_in_ci_only(tmp_path: Path, ci: str) -> None:
    for name, body in (("id", "echo 0"), ("apt-get", f"echo >'{tmp_path}/it was run'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sh").symlink_to(str(shutil.which("sh")))
    subprocess.run([ROOT / "tests" / "install_chromium.sh"], env={"PATH": str(tmp_path), "CI": ci}, check=True)
    assert (tmp_path / "it was run").exists() == bool(ci)


def ranges() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(need for extra in project["optional-dependencies"].values() for need in extra)]


def test_ranges_of_the_wheel_hold_the_version_that_the_tests_run_with() -> None:
    versions = {package.name: package.version for package in locked(RUN, TORCH, SCALE)}
    for need in map(Requirement, ranges()):
        assert need.specifier, need
        assert need.specifier.contains(versions[canonicalize_name(need.name)]), need


def test_what_the_program_imports_is_a_dependency_of_the_wheel() -> None:
    """What is only of use to the clone is not: plots of the replication, for one."""
    needed = {canonicalize_name(Requirement(need).name) for need in ranges()}
    lines = [
        *(ROOT / "requirements.txt").read_text().splitlines(),
        *(ROOT / "requirements-scale.txt").read_text().splitlines(),
    ]
    pinned = {canonicalize_name(Requirement(line.partition("#")[0]).name) for line in lines if "==" in line}
    assert pinned - needed == {"matplotlib"}


def test_every_range_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for need in ranges():
        [line, *_] = [line for line in text.splitlines() if f'"{need}"' in line]
        assert "  # " in line, f"{need}: why it is here"
