"""Under which licences the packages are that the program runs with: licences.md, written by `make licences`.

Each package is asked for its own metadata. Where that says nothing or several things, somebody has looked (LOOKED_AT).
A licence of a kind that nobody has agreed to is an error."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from supply.lock import ROOT, RUN, SCALE, TORCH, Locked, read_lock

PAGE = ROOT / "licences.md"
HEAD = """# Licences of what the program runs with

twothirds is under the MIT licence and holds no code of the packages below: `make` installs them beside it. They are
those of `supply/run.lock`, `supply/torch.lock` and `supply/scale.lock` that are installed, with what their own metadata
say. Dask and Ray are optional: `supply/install.sh .venv/bin/python scale` installs them.

All of them allow use in any program. MPL, LGPL and the Artistic licence ask something of those who change and pass on
the package itself, not of those who use it.

| package | version | licence |
|---|---|---|
"""
LOOKED_AT = {
    "pysqlite3": "Zlib",  # says nothing in its metadata; the file LICENSE of its source is the zlib licence
    "text-unidecode": "Artistic-1.0-Perl OR GPL-2.0-or-later",  # the choice is ours: the Artistic licence
}
AGREED = re.compile(
    r"(?i)\b(mit|mit-0|mit-cmu|0?bsd|apache|isc|psf|python software foundation|zlib|cc0|bsl-1\.0|cnri-python|"
    r"mozilla public license|mpl|lgpl|artistic)"
)
NEVER = re.compile(r"(?i)\bagpl|affero|proprietary|commercial|\bgpl|gnu general public|unknown")


class LicenceError(Exception):
    """A licence that nobody has agreed to."""


def licence_of(package: Distribution) -> str:
    """The licence in its own words: an SPDX expression, else its classifiers, else the first line of its text."""
    name, metadata = package.name.lower(), package.metadata
    if name in LOOKED_AT:
        return LOOKED_AT[name]
    for expression in metadata.get_all("License-Expression") or []:
        return str(expression)
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License")]
    text = next(iter("".join(metadata.get_all("License") or []).strip().splitlines()), "")
    return " or ".join(line.rpartition(" :: ")[2] for line in classifiers) or text or "unknown"


def agreed(licence: str) -> bool:
    """Whether one of the alternatives is of a kind that was agreed to."""
    return any(AGREED.search(part) and not NEVER.search(part) for part in re.split(r"(?i)\s+or\s+", licence))


def page(*locks: Path) -> str:
    """Raises LicenceError for a package whose licence must be looked at first."""
    packages = [package for lock in locks for package in read_lock(lock.read_text(encoding="utf-8"))]
    return HEAD + "".join(_row(package) for package in sorted(packages, key=str))


def _row(package: Locked) -> str:
    """Nothing where that very version is not installed, as for another Python."""
    try:
        installed = distribution(package.name)
    except PackageNotFoundError:
        return ""
    if installed.version.partition("+")[0] != package.version:
        return ""
    licence = licence_of(installed)
    if not agreed(licence):
        raise LicenceError(f"{package.name} is under {licence!r}: look at it, then add it to supply/licences.py")
    return f"| {package.name} | {package.version} | {licence} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(RUN, TORCH, SCALE), encoding="utf-8")
    print(PAGE)
