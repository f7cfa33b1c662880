"""What a server can do, as a probe has found out, and the file in which it is remembered. No identity depends on it."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from uuid import uuid4

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.oracle import digest_of

LIMITS = ("max_completion_tokens", "max_tokens")
OPTIONAL = ("temperature", "seed", "reasoning_effort", "top_logprobs", "logprobs")  # parameters that may be left out


@dataclass(frozen=True, slots=True)
class Abilities:
    decisions: bool = False  # probabilities for many predicates in one call
    format: str = ""  # json_schema is enforced, json_object is enforced, or neither
    limit: str = "max_completion_tokens"  # how the length of a reply is limited
    missing: tuple[str, ...] = ()  # parameters that the server rejects
    reasoning: bool = False  # thinks before it answers, in tokens that are paid for
    rate: float = 0.0  # tokens that one request was last seen to write a second; 0: many, or it is not known
    width: int = 0  # requests that were then in flight
    next_word: bool = False  # tells how probable yes and no are as the first word of a reply

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"missing": list(self.missing)}

    @classmethod
    def from_json(cls, data: Any) -> Abilities | None:
        """None for anything that `to_json` did not write."""
        if not isinstance(data, dict) or set(data) != {field.name for field in fields(cls)}:
            return None
        words = isinstance(data["missing"], list) and all(name in OPTIONAL for name in data["missing"])
        flags = all(isinstance(data[name], bool) for name in ("decisions", "reasoning", "next_word"))
        known = data["format"] in ("json_schema", "json_object", "") and data["limit"] in LIMITS
        speeds = [data[name] for name in ("rate", "width")]
        pace = all(isinstance(speed, int | float) and not isinstance(speed, bool) and speed >= 0 for speed in speeds)
        return cls(**(data | {"missing": tuple(data["missing"])})) if words and flags and known and pace else None


class Remembered:
    """A small JSON file, used like a dict. Losing it costs another probe."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> Any:
        return self._read().get(key)

    def __setitem__(self, key: str, value: Any) -> None:
        with contextlib.suppress(OSError):  # a folder that cannot be written only means another probe
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written = self._path.with_name(f"{self._path.name}.{uuid4().hex}")
            written.write_text(json.dumps({**self._read(), key: value}, indent=1), encoding="utf-8")
            os.replace(written, self._path)

    def _read(self) -> dict[str, Any]:
        """What `Abilities.to_json` wrote; the rest counts as absent."""
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        stored = content if isinstance(content, dict) else {}
        return {key: value for key, value in stored.items() if Abilities.from_json(value) is not None}


def probe_key(config: OpenAIConfig) -> str:
    """The key of remembered abilities: all that could change them, and no secret."""
    sampling = [config.temperature is not None, config.reasoning_effort, config.logprobs]
    return digest_of([config.url, config.model, config.output, *sampling])
