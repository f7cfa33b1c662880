"""Why examples have features or lack them, as somebody said who was asked: rationale.jsonl in the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from twothirds.reports.run.files import RunError, replace_file
from twothirds.reports.run.json_parts import JsonPart

NAME = "rationale.jsonl"


class Rationale(JsonPart):
    feature: str
    definition: str
    id: str
    label: int  # of the run when it was asked: 1, 0, or −1 where it is unknown
    has: bool  # what the one who was asked says
    reason: str
    quote: str = ""  # words of the text
    by: str

    @property
    def agrees(self) -> bool:
        return self.label == int(self.has)


def read_reasons(folder: Path) -> list[Rationale]:
    path = folder / NAME
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Rationale.model_validate_json(line) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path} cannot be read ({reason}): delete it and ask again, for nothing") from None


def write_reasons(folder: Path, new: Iterable[Rationale]) -> None:
    """Beside those that are there; one of the same feature and example replaces the older one."""
    kept = {(rationale.feature, rationale.definition, rationale.id): rationale for rationale in read_reasons(folder)}
    kept |= {(rationale.feature, rationale.definition, rationale.id): rationale for rationale in new}
    text = "".join(json.dumps(rationale.to_json(), ensure_ascii=False) + "\n" for rationale in kept.values())
    replace_file(folder / NAME, lambda file: file.write(text))
