"""The image tower of a CLIP model as an ONNX file, and a table of names with their vectors in place of a text tower.

Pictures are prepared as CLIP does: the shorter side is scaled to the tower's input (bicubic), the middle is cut out,
and colours are normalised by CLIP's means and deviations. Each picture is passed through alone: towers whose numbers
are quantised as they run would make another vector of it in other company."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.models.contrastive.embeddings import batches, explained, opened_pictures
from twothirds.models.contrastive.vector_file import Vectors
from twothirds.models.contrastive.vocabulary import Vocabulary, fold
from twothirds.models.local import ModelFiles
from twothirds.models.oracle import OracleUnavailable
from twothirds.sources import Example

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIX = ".onnx"
SIDE = 224  # where the file leaves it open
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
SCALE = 100.0  # of a cosine, before names compete: the most that CLIP may learn, and what its published models have
OUTPUT = "image_embeds"  # as exporters call it


def is_tower(model: str) -> bool:
    return model.endswith(SUFFIX)


def find_tower(model: str) -> ModelFiles:
    """Raises OracleUnavailable. Files that the tower's numbers are stored in beside it decide its version too."""
    path = Path(os.path.expanduser(model))
    if not path.is_file():
        raise OracleUnavailable(f"there is no file {model!r}: give the path of an image tower as ONNX")
    digest = hashlib.sha256()
    for part in sorted(path.parent.glob(f"{glob.escape(path.name)}*")):
        with part.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return ModelFiles(path.name, str(path), None, digest.hexdigest()[:16])


def vectors_name(files: ModelFiles) -> str:
    """Under which the vectors of pictures are cached, for all who use the tower."""
    return f"{files.name}-{files.version}"


class NameVectors:
    """Unit vectors of names, in the order of the vocabulary."""

    def __init__(self, vocabulary: Vocabulary, path: Path) -> None:
        self.file = path.name
        self.names = tuple(phrase.name for phrase in vocabulary.phrases)
        self.vectors = _read_vectors(path)
        rows, names = len(self.vectors), len(self.names)
        if rows != names:
            raise OracleUnavailable(
                f"vectors {str(path)!r} has {rows} rows, and the vocabulary {names} different names: "
                "give one row for each name, in the same order"
            )
        if names < 2:
            raise OracleUnavailable("an ONNX tower lets names compete, and the vocabulary has one: give several")
        self.digest = hashlib.sha256(self.vectors.tobytes()).hexdigest()[:16]
        self._rows = {fold(name): row for row, name in enumerate(self.names)}

    def problem_with(self, text: str) -> str | None:
        return None if fold(text) in self._rows else f"{self.file} has no vector of {text!r}"

    def of(self, texts: Sequence[str]) -> Vectors:
        unknown = next((problem for text in texts if (problem := self.problem_with(text))), None)
        if unknown is not None:
            raise OracleUnavailable(f"{unknown}: add it, or choose another name")
        return self.vectors[[self._rows[fold(text)] for text in texts]]


def _read_vectors(path: Path) -> Vectors:
    what = f"vectors {str(path)!r}"
    try:
        found: Any = np.load(path, allow_pickle=False)
    except OSError as error:
        raise OracleUnavailable(f"{what} cannot be read ({error.strerror or error}): check the path") from None
    except Exception:  # of broken files numpy raises anything from EOFError to SyntaxError
        found = None
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind != "f":
        raise OracleUnavailable(f"{what} is no table of numbers: save one by numpy.save, with one row for each name")
    rows = found.astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise OracleUnavailable(f"{what} has a row that is zero or not finite: make it again")
    unit: Vectors = rows / lengths
    return unit


class TowerEmbedder:
    """A loaded tower. `names` may be missing where only pictures are to become vectors."""

    sigmoid, scale, bias = False, SCALE, 0.0

    def __init__(self, files: ModelFiles, names: NameVectors | None = None) -> None:
        self.name, self._names = files.name, names
        self.rivals: tuple[str, ...] = names.names if names else ()
        with explained(f"tower {files.name!r} cannot be loaded"):
            self._session: Any = _session(files.location)
            (pixels,) = self._session.get_inputs()
            self._input, self._side = pixels.name, _side_of(files.name, pixels.shape)
            self._output = _output_of(files.name, self._session.get_outputs())
        self.size = self._run(np.ones((1, 3, self._side, self._side), np.float32)).shape[1]
        if names is not None and names.vectors.shape[1] != self.size:
            raise OracleUnavailable(
                f"tower {files.name!r} makes vectors of {self.size} numbers, and those of {names.file} have "
                f"{names.vectors.shape[1]}: give vectors by the text tower of the same model"
            )

    def problem_with(self, text: str) -> str | None:
        return self._names.problem_with(text) if self._names else f"{self.name} reads no texts"

    def texts(self, texts: Sequence[str]) -> Vectors:
        if self._names is None:
            raise OracleUnavailable(f"tower {self.name!r} looks at pictures and reads no texts: choose another model")
        return self._names.of(texts)

    def images(self, examples: Sequence[Example]) -> Vectors:
        rows = [np.empty((0, self.size), np.float32)]
        for batch in batches(examples):
            for pictures in opened_pictures(batch):
                rows += [self._run(prepared(picture, self._side)[None]) for picture in pictures]
        return np.concatenate(rows)

    def _run(self, pixels: NDArray[np.float32]) -> Vectors:
        with explained(f"tower {self.name!r} fails"):
            found = np.asarray(self._session.run([self._output], {self._input: pixels})[0], np.float32)
            length = np.linalg.norm(found)
            if found.shape[:1] != (1,) or found.ndim != 2 or not (np.isfinite(length) and length > 0):
                raise ValueError("its vectors are not numbers, one row for each picture")
        unit: Vectors = found / length
        return unit


def prepared(picture: Image, side: int) -> NDArray[np.float32]:
    """An RGB picture as CLIP sees it: its channels, normalised. Only the square in the middle is scaled: the whole of a
    long and narrow picture would fill the memory."""
    from PIL.Image import Resampling

    across, down = (_middle(length, length * side // min(picture.size), side) for length in picture.size)
    square = picture.resize((side, side), Resampling.BICUBIC, box=(across[0], down[0], across[1], down[1]))
    values = (np.asarray(square, np.float32) / 255 - MEAN) / DEVIATION
    return values.transpose(2, 0, 1).astype(np.float32)


def _middle(length: int, scaled: int, side: int) -> tuple[float, float]:
    """Where the middle of a length begins and ends that is `side` pixels long once the whole is scaled."""
    start = (scaled - side) // 2
    return start * length / scaled, (start + side) * length / scaled


def _session(location: str) -> Any:
    try:
        onnxruntime: Any = import_module("onnxruntime")
    except ImportError:
        raise OracleUnavailable(
            "image towers as ONNX files need onnxruntime, which is optional and not installed: "
            "pip install onnxruntime (requirements-dev.txt has a version that is tested)"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised as well
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other programs have the cores meanwhile
    return onnxruntime.InferenceSession(location, options, providers=["CPUExecutionProvider"])


def _side_of(name: str, shape: Sequence[int | str | None]) -> int:
    """A length that the file leaves open is a word or None."""
    asked = (1, 3, SIDE, SIDE)
    lengths = [length if isinstance(length, int) else usual for length, usual in zip(shape, asked, strict=False)]
    if len(shape) == 4 and lengths[:2] == [1, 3] and lengths[2] == lengths[3]:
        return lengths[2]
    stated = " × ".join(map(str, shape))
    raise OracleUnavailable(
        f"tower {name!r} takes {stated or 'one number'}, not a square picture in RGB (1 × 3 × {SIDE} × {SIDE}): "
        "choose the image tower of a CLIP model"
    )


def _output_of(name: str, outputs: Sequence[Any]) -> str:
    """The output named as exporters do, else the first that has one row for each picture."""
    tables = [output.name for output in outputs if len(output.shape) == 2]
    if not tables:
        raise OracleUnavailable(f"tower {name!r} has no vector for a picture among its outputs: choose another")
    return str(OUTPUT if OUTPUT in tables else tables[0])
