"""What the parts of run.json and its kin have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("Input should be a number")
    return value  # an int stays an int, so that it is written as it was read


Number = Annotated[float, PlainValidator(_number)]


class JsonPart(BaseModel):
    """A JSON object of ours: keys of newer versions are kept, and fields that were not set are not written."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)
