"""The lock files agree with the requirements, are complete, and every licence was agreed to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from supply.licences import OPTIONAL, PAGE, LicenceError, agreed, page
from supply.locks import CUDA, DEV, ROOT, RUN, SCALE, TOOLS, TORCH, Locked, normal, pins, read_lock, write_lock

LOCKS = (RUN, DEV, SCALE, TORCH, CUDA, TOOLS)


def locked(*paths: Path) -> dict[str, list[Locked]]:
    found: dict[str, list[Locked]] = {}
    for path in paths:
        for one in read_lock(path.read_text(encoding="utf-8")):
            found.setdefault(one.name, []).append(one)
    return found


@pytest.mark.parametrize(
    ("requirements", "locks"),
    [
        ("requirements.txt", (RUN, TORCH)),
        ("requirements-dev.txt", (DEV,)),
        ("requirements-scale.txt", (SCALE,)),
        ("supply/tools.txt", (TOOLS,)),
    ],
)
def test_what_is_required_is_locked_at_its_version(requirements: str, locks: tuple[Path, ...]) -> None:
    wanted, found = pins(ROOT / requirements), locked(*locks)
    assert len(wanted) > (1 if requirements == "supply/tools.txt" else 3)
    for name, at in wanted.items():
        assert [one.version for one in found.get(name, [])] == [at], f"{name}: run `make lock`"


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_lock_names_versions_and_hashes_and_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    for one in read_lock(text):
        assert one.hashes, one.name


def test_no_package_is_in_two_locks_but_at_one_version_in_the_two_that_go_beside_the_first() -> None:
    names = [one for path in (RUN, TORCH, CUDA) for one in sorted(locked(path))]
    assert len(names) == len(set(names))
    developing, scaling = locked(DEV), locked(SCALE)
    assert {*developing, *scaling}.isdisjoint(names)
    for name in {*developing} & {*scaling}:
        assert developing[name] == scaling[name]


def installed(name: str) -> str | None:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


def test_the_tests_run_with_what_is_locked() -> None:
    for name, versions in locked(RUN, DEV, TORCH).items():
        found = installed(name)
        if name == "setuptools":  # comes with the environment, and is only brought up to date
            continue
        assert found is None or found in {one.version for one in versions}, f"{name} {found}: run `make test`"


def test_everything_that_a_locked_package_needs_is_locked() -> None:
    found = locked(RUN, DEV, TORCH)
    assert sum(installed(name) is not None for name in found) > 150
    for name in found:
        if installed(name) is None:
            continue
        for line in distribution(name).requires or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                versions = [one.version for one in found.get(normal(need.name), [])]
                assert any(need.specifier.contains(at, prereleases=True) for at in versions), f"{name}: {need}"


def test_what_a_lock_says_is_read_back(tmp_path: Path) -> None:
    lines = [Locked("a", "1.0", "", ("0" * 64, "f" * 64)), Locked("b-c", "2", "python_version < '3.12'", ("1" * 64,))]
    write_lock(tmp_path / "x.lock", "Two.", lines)
    text = (tmp_path / "x.lock").read_text(encoding="utf-8")
    assert read_lock(text) == lines
    with pytest.raises(ValueError, match="is no pinned requirement"):
        read_lock(text + "d>=3\n")


def test_pip_refuses_a_file_whose_hash_is_not_in_the_lock(tmp_path: Path) -> None:
    """What the promise rests on: pip itself, with the options of supply/install.sh."""
    from zipfile import ZipFile

    with ZipFile(tmp_path / "thing-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("thing.py", "")
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    write_lock(tmp_path / "x.lock", "One.", [Locked("thing", "1.0", "", ("0" * 64,))])
    options = re.findall(r"--[a-z-]+(?:=\S+)?", re.search(r"pip install ([^$]*)\"\$@\"", SCRIPT)[1])  # type: ignore[index]
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(options)
    here = ["--no-index", "--find-links", str(tmp_path), "--target", str(tmp_path / "there")]
    here += ["-r", str(tmp_path / "x.lock")]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options, *here], capture_output=True, text=True)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "there").exists()


SCRIPT = (ROOT / "supply" / "install.sh").read_text(encoding="utf-8")


def test_the_page_of_licences_is_of_what_is_installed() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written), "run `make licences`"


def test_every_optional_package_is_on_the_page_at_its_version_under_a_licence_that_was_agreed_to() -> None:
    table = PAGE.read_text(encoding="utf-8").partition(OPTIONAL)[2].splitlines()
    rows = {name: (version, licence) for name, version, licence in (row.strip("| ").split(" | ") for row in table)}
    assert {name: version for name, (version, _) in rows.items()} == {
        name: one.version for name, (one,) in locked(SCALE).items()
    }
    assert [name for name, (_, licence) in rows.items() if not agreed(licence)] == []


def test_a_new_version_of_an_optional_package_must_be_looked_at() -> None:
    if installed("ray") is not None:
        pytest.skip("it is installed, so it is asked for itself")
    written = PAGE.read_text(encoding="utf-8")
    with pytest.raises(LicenceError, match=r"ray .* is not installed: run"):
        page(re.sub(r"\| ray \| [^|]+\|", "| ray | 0.1 |", written))


@pytest.mark.parametrize(
    ("licence", "is_agreed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("LGPL-3.0-only", True),
        ("Artistic-1.0-Perl OR GPL-2.0-or-later", True),
        ("GPL-3.0-only", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("AGPL-3.0-or-later", False),
        ("MIT AND AGPL-3.0-or-later", False),
        ("GNU Affero General Public License v3", False),
        ("Other/Proprietary License", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_a_licence_that_forbids_use_or_is_unknown_is_not_agreed_to(licence: str, is_agreed: bool) -> None:
    assert agreed(licence) == is_agreed


EVIL = """
from pathlib import Path
def get_requires_for_build_wheel(settings=None):
    Path({marker!r}).touch()
    return []
prepare_metadata_for_build_wheel = build_wheel = get_requires_for_build_wheel
"""


def test_a_source_of_torch_is_not_run_before_its_hash_is_checked(tmp_path: Path) -> None:
    """pip would build it to learn its name: in the script only binaries may be chosen."""
    marker, source = tmp_path / "it was run", tmp_path / "torch-9.9.9"
    source.mkdir()
    (source / "evil.py").write_text(EVIL.format(marker=str(marker)))
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n[project]\nname = "torch"\n'
        'version = "9.9.9"\n'
    )
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")
    with tarfile.open(tmp_path / "torch-9.9.9.tar.gz", "w:gz") as archive:
        archive.add(source, "torch-9.9.9")
    supply = tmp_path / "supply"
    supply.mkdir()
    shutil.copy(ROOT / "supply" / "install.sh", supply)
    (supply / "run.lock").write_text("# nothing\n")
    write_lock(supply / "torch.lock", "One.", [Locked("torch", "9.9.9", "", ("0" * 64,))])
    only_here = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_DRY_RUN": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
    done = subprocess.run(
        [supply / "install.sh", sys.executable, "run"], env=os.environ | only_here, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "No matching distribution found for torch==9.9.9" in done.stderr
    assert not marker.exists()


def test_every_command_of_the_scripts_that_fetches_packages_takes_binaries_only() -> None:
    for script in (SCRIPT, (ROOT / "supply" / "lock.py").read_text(encoding="utf-8")):
        fetching = re.findall(r'pip["\s,]+(?:install|download).*', script)
        assert fetching
        assert all("--only-binary" in line for line in fetching)
    assert "pip install" not in (ROOT / "Makefile").read_text(encoding="utf-8")


TOOLS_OF_SCRIPTS = ("sh", "dirname", "mktemp", "tar", "gzip", "sha256sum", "cut", "rm", "mkdir", "mv", "cp", "touch")


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A PATH on which there is nothing but what the scripts need, and root who may do everything."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for name in TOOLS_OF_SCRIPTS:
        (folder / name).symlink_to(str(shutil.which(name)))
    _command(folder, "id", "echo 0")
    return folder


def _command(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("ci", [False, True])
def test_packages_of_the_system_are_installed_unasked_in_ci_only(tmp_path: Path, commands: Path, ci: bool) -> None:
    _command(commands, "apt-get", f"touch '{tmp_path}/it was run'")
    environment = {"PATH": str(commands)} | ({"CI": "true"} if ci else {})
    script = ROOT / "tests" / "install_chromium.sh"
    done = subprocess.run([script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert (tmp_path / "it was run").exists() == ci
    if not ci:
        assert done.stderr == (
            "Chromium is missing: the tests of pages are skipped (to run them: apt-get install chromium, as root)\n"
        )


def test_an_axe_core_with_another_hash_is_not_used(tmp_path: Path, commands: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "axe.min.js").write_text("alert(1)")
    with tarfile.open(tmp_path / "axe.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    _command(commands, "npm", f"cp '{tmp_path}/axe.tgz' axe-core-4.14.0.tgz")
    script = tmp_path / "install_axe.sh"
    shutil.copy(ROOT / "tests" / "install_axe.sh", script)
    there = tmp_path / "node_modules" / "axe-core" / "axe.min.js"
    for planted in (False, True):
        if planted:
            there.parent.mkdir(parents=True)
            there.write_text("alert(2)")
        done = subprocess.run([script], env={"PATH": str(commands)}, capture_output=True, text=True)
        assert done.returncode == 1
        assert "is not the one that tests/install_axe.sh names" in done.stderr
        assert not there.exists()
