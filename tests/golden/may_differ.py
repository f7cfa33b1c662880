"""What may differ between a recorded result and that of today, field by field with the reason, and how they are
compared.

What may differ is masked before it is written or compared: its value does not count, that it is there does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MASKED = "(may differ)"
MOST = 30  # differences that are reported
TOLERANCE = 1e-5  # of numbers with a fraction, as a share: sums may be rounded in another order

# A field, by the end of its path as a regular expression: why its value may differ.
FIELDS = {
    r"(run_id|cells\.run)": "every run has a new one",
    r"(at|\w+_at)": "the time of day",
    r"seconds": "how long it took on this machine",
    r"versions\.\w+": "whatever is installed",
    r"(digest|scope)": "a part of the keys of stored answers, or of a data set as the store knows it",
    r"oracle\.prompts": "a digest of the prompts",
    r"npz:": "numbers of a classifier, which another processor computes a little differently",
}
# A text anywhere in a value or in the name of a file, as a regular expression: what stands in its place.
TEXTS = {
    r"(127\.0\.0\.1|localhost):\d+": r"\1:PORT",  # a server listens at whatever port is free
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UUID",  # of a run
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+\d:.Z]*": "TIME",
    r"(?<![0-9a-f])([0-9a-f]{64}|[0-9a-f]{16})(?![0-9a-f])": "DIGEST",  # of labels, settings, files or truth
}
# Numbers of the shipped model, which another processor or another PyTorch computes a little differently.
COARSE = {r"probability(\[\d+\])*": 1e-3}

_MASKED = re.compile(rf"[ .](?:{'|'.join(FIELDS)})$")


def masked(result: Any, folder: Path) -> Any:
    """The result with whatever may differ replaced, and the test's own folder named FOLDER."""
    return {_text(name, str(folder)): _masked(f"{name}:", value, str(folder)) for name, value in result.items()}


def _masked(path: str, value: Any, folder: str) -> Any:
    if _MASKED.search(path) and value is not None and not isinstance(value, dict):
        return MASKED
    if isinstance(value, dict):
        return {_text(key, folder): _masked(_below(path, key), one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [_masked(_item(path, place), one, folder) for place, one in enumerate(value)]
    return _text(value, folder) if isinstance(value, str) else value


def _text(text: str, folder: str) -> str:
    text = text.replace(folder, "FOLDER")
    for pattern, instead in TEXTS.items():
        text = re.sub(pattern, instead, text)
    return text


def _below(path: str, key: str) -> str:
    return f"{path} {key}" if path.endswith(":") else f"{path}.{key}"


def _item(path: str, place: int) -> str:
    return f"{path} [{place}]" if path.endswith(":") else f"{path}[{place}]"


def differences(recorded: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """`run/run.json: features[3].name: 'a' != 'b'` for each field that differs, is missing or is new; 30 at most."""
    lines = [line for name in sorted({*recorded, *found}) for line in _of_file(name, recorded, found)]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return lines[:MOST] + more


def _of_file(name: str, recorded: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    if name not in found:
        yield f"{name}: missing"
    elif name not in recorded:
        yield f"{name}: new"
    else:
        yield from _between(f"{name}:", recorded[name], found[name])


def _between(path: str, recorded: Any, found: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted({*recorded, *found}):
            below = _below(path, key)
            if key not in found:
                yield f"{below}: missing, was {_short(recorded[key])}"
            elif key not in recorded:
                yield f"{below}: new, is {_short(found[key])}"
            else:
                yield from _between(below, recorded[key], found[key])
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            yield f"{path} length: {len(recorded)} != {len(found)}"
        for place, (before, now) in enumerate(zip(recorded, found, strict=False)):
            yield from _between(_item(path, place), before, now)
    elif not _same(path, recorded, found):
        yield f"{path if path.endswith(':') else path + ':'} {_short(recorded)} != {_short(found)}"


def _same(path: str, recorded: Any, found: Any) -> bool:
    if type(recorded) is not type(found):
        return False
    if isinstance(recorded, float):
        coarse = next((width for pattern, width in COARSE.items() if re.search(rf"[ .](?:{pattern})$", path)), 0.0)
        return math.isclose(recorded, found, rel_tol=TOLERANCE, abs_tol=coarse)
    return bool(recorded == found)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
