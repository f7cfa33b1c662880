"""The lock files agree with the requirements, are complete, and every licence was agreed to."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from supply.licences import OPTIONAL, PAGE, LicenceError, agreed, page
from supply.locks import CUDA, DEV, ROOT, RUN, SCALE, TORCH, Locked, normal, pins, read_lock, write_lock

LOCKS = (RUN, DEV, SCALE, TORCH, CUDA)


def locked(*paths: Path) -> dict[str, list[Locked]]:
    found: dict[str, list[Locked]] = {}
    for path in paths:
        for one in read_lock(path.read_text(encoding="utf-8")):
            found.setdefault(one.name, []).append(one)
    return found


@pytest.mark.parametrize(
    ("requirements", "locks"),
    [("requirements.txt", (RUN, TORCH)), ("requirements-dev.txt", (DEV,)), ("requirements-scale.txt", (SCALE,))],
)
def test_what_is_required_is_locked_at_its_version(requirements: str, locks: tuple[Path, ...]) -> None:
    wanted, found = pins(ROOT / requirements), locked(*locks)
    assert len(wanted) > 3
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
    options = re.findall(r"--[a-z-]+", re.search(r"pip install ([^$]*)\"\$@\"", SCRIPT)[1])  # type: ignore[index]
    assert {"--require-hashes", "--no-deps"} <= set(options)
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
