"""Under which licences the packages are that the program runs with: docs/licences.md, written by `make licences`.

Each package is asked for its own metadata. Where that says nothing or several things, somebody has looked (LOOKED_AT).
A licence of a kind that nobody has agreed to is an error."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from supply.locks import ROOT, RUN, SCALE, TORCH, Locked, read_lock

PAGE = ROOT / "docs" / "licences.md"
HEAD = """# Licences of what the program runs with

twothirds is under the MIT licence and holds no code of the packages below: `make` installs them beside it. They are
those of `supply/run.lock` and torch, as installed on Linux with Python 3.11, and what their own metadata say. Written
by `make licences`; a test compares it with what is installed.

All of them allow use in any program. MPL, LGPL and the Artistic licence ask something of those who change and pass on
the package itself, not of those who use it.

| package | version | licence |
|---|---|---|
"""
OPTIONAL = """
## Optional: clusters, and compiled joins

Those of `supply/scale.lock`, which only `supply/install.sh .venv/bin/python scale` installs. Where they are not
installed, `make licences` keeps the lines below as long as the versions are the same.

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
    name, said = package.name.lower(), package.metadata
    if name in LOOKED_AT:
        return LOOKED_AT[name]
    for expression in said.get_all("License-Expression") or []:
        return str(expression)
    classified = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or [] if line.startswith("License")]
    text = next(iter("".join(said.get_all("License") or []).strip().splitlines()), "")
    return " or ".join(classified) or text or "unknown"


def agreed(licence: str) -> bool:
    """Whether one of the alternatives is of a kind that was agreed to."""
    return any(AGREED.search(part) and not NEVER.search(part) for part in re.split(r"(?i)\s+or\s+", licence))


def page(before: str = "") -> str:
    """`before` is the page as it was. Raises LicenceError for a package whose licence must be looked at first."""
    run = [*read_lock(RUN.read_text("utf-8")), *read_lock(TORCH.read_text("utf-8"))]
    rows = [_row(one, licence) for one in sorted(run, key=str) if (licence := _installed(one)) is not None]
    written = set(before.partition(OPTIONAL)[2].splitlines(keepends=True))
    return HEAD + "".join(rows) + OPTIONAL + "".join(_optional_row(one, written) for one in _optional())


def _optional() -> list[Locked]:
    return sorted(read_lock(SCALE.read_text("utf-8")), key=str)


def _optional_row(locked: Locked, written: set[str]) -> str:
    licence = _installed(locked)
    if licence is not None:
        return _row(locked, licence)
    row = next((row for row in written if row.startswith(f"| {locked.name} | {locked.version} |")), None)
    if row is None:
        at = f"{locked.name} {locked.version}"
        raise LicenceError(f"{at} is not installed: run `supply/install.sh .venv/bin/python scale`, then this again")
    return row


def _row(locked: Locked, licence: str) -> str:
    if not agreed(licence):
        raise LicenceError(f"{locked.name} is under {licence!r}: look at it, then add it to supply/licences.py")
    return f"| {locked.name} | {locked.version} | {licence} |\n"


def _installed(locked: Locked) -> str | None:
    """The licence of that very version; None where another or none is installed, as for another Python."""
    try:
        package = distribution(locked.name)
    except PackageNotFoundError:
        return None
    return licence_of(package) if package.version.partition("+")[0] == locked.version else None


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)
