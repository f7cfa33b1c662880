"""An image tower as an ONNX file of a few hundred bytes: a vector is the mean colour, normalised as CLIP does.

Written field by field as onnx.proto numbers them, so that no test needs a package to write it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FLOAT, OPSET, IR = 1, 17, 8
Shape = Sequence[int | str]


def write_tower(path: Path, *, side: int | str = 32, batch: int | str = "batch", numbers: int = 3) -> Path:
    """`numbers` of a vector: those past the three colours are zero."""
    weights = np.eye(3, numbers, dtype=np.float32)
    graph = [
        _message(1, _node("GlobalAveragePool", ["pixel_values"], "pooled")),
        _message(1, _node("Flatten", ["pooled"], "colours")),
        _message(1, _node("MatMul", ["colours", "weights"], "image_embeds")),
        _text(2, "tower"),
        _message(5, _tensor("weights", weights)),
        _message(11, _value("pixel_values", (batch, 3, side, side))),
        _message(12, _value("colours", (batch, 3))),
        _message(12, _value("image_embeds", (batch, numbers))),
    ]
    opset = _message(8, _text(1, "") + _number(2, OPSET))
    path.write_bytes(_number(1, IR) + _message(7, b"".join(graph)) + opset)
    return path


def colour_vectors(*colours: tuple[int, int, int]) -> NDArray[np.float32]:
    """What the tower makes of pictures of one colour each."""
    mean, deviation = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    return ((np.array(colours) / 255 - mean) / deviation).astype(np.float32)


def _node(operation: str, inputs: Sequence[str], output: str) -> bytes:
    return b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operation)


def _tensor(name: str, values: NDArray[np.float32]) -> bytes:
    dimensions = b"".join(_number(1, length) for length in values.shape)
    return dimensions + _number(2, FLOAT) + _text(8, name) + _message(9, values.tobytes())


def _value(name: str, shape: Shape) -> bytes:
    lengths = [_number(1, length) if isinstance(length, int) else _text(2, length) for length in shape]
    dimensions = b"".join(_message(1, length) for length in lengths)
    return _text(1, name) + _message(2, _message(1, _number(1, FLOAT) + _message(2, dimensions)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
