"""Examples as vectors: by a model the user names, or by plain statistics of texts and pictures where none is named.

Vectors of a model are cached by content. Nothing is downloaded unless a hub id is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from twothirds.models.contrastive import (
    SHIPPED,
    Embedder,
    Encoder,
    Pixels,
    TowerEmbedder,
    VectorFile,
    Vectors,
    batches,
    explained,
    find_tower,
    is_tower,
    opened_pictures,
)
from twothirds.models.local import ModelFiles, find_model, pretrained
from twothirds.models.oracle import OracleUnavailable
from twothirds.sources import Example

if TYPE_CHECKING:
    from PIL.Image import Image

AT_ONCE = 4_096  # examples whose vectors are computed before they are kept
SIDE, CELLS, DIRECTIONS = 64, 8, 8
SIZE = CELLS * CELLS * (3 + DIRECTIONS)
PIXELS = ("pixels-1", SIZE)  # name with version, and numbers in a vector


class VectorSource(Protocol):
    name: str  # with its version: vectors of different names do not go together

    def vectors(self, examples: Sequence[Example]) -> Vectors: ...

    def state(self) -> Mapping[str, NDArray[Any]]:
        """What `embedder_of` must be given to make the same vectors another day."""
        ...


class NoVectors:
    """For where a cheaper model's answers are all that there is to learn from."""

    name = ""

    def vectors(self, examples: Sequence[Example]) -> Vectors:
        return np.empty((len(examples), 0), np.float32)

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {}


class StoredVectors:
    """Vectors of contents, computed once."""

    def __init__(self, computes: _Pixels | _Contrastive | _Sentences | _Vision, cache: Path | None) -> None:
        self.name = computes.name
        self._computes = computes
        self._file = VectorFile(cache / computes.name.replace("/", "-"), computes.size) if cache is not None else None

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {}

    def vectors(self, examples: Sequence[Example]) -> Vectors:
        chunks = [np.empty((0, self._computes.size), np.float32)]
        for start in range(0, len(examples), AT_ONCE):
            chunks.append(self._of(examples[start : start + AT_ONCE]))
        return np.concatenate(chunks)

    def _of(self, examples: Sequence[Example]) -> Vectors:
        if self._file is None:
            return self._computes.embed(examples)
        vectors, there = self._file.find([example.digest for example in examples])
        missing = np.flatnonzero(~there).tolist()
        if missing:
            vectors[missing] = self._computes.embed([examples[row] for row in missing])
            self._file.add({examples[row].digest: vectors[row] for row in missing})
        return vectors


def embedder_of(
    model: str | None,
    examples: Sequence[Example],
    cache: Path | None,
    state: Mapping[str, NDArray[Any]] | None = None,
) -> VectorSource:
    """`model` is a folder or a hub id, `contrastive[:MODEL]`, an image tower as an ONNX file, or None for statistics of
    the texts or pictures."""
    pictures = bool(examples) and examples[0].image is not None
    if model is None:
        return StoredVectors(_Pixels(), cache) if pictures else TermVectors.of(examples, state)
    kind, _, named = model.partition(":")
    if is_tower(model):
        tower = find_tower(named if kind == "contrastive" else model)
        return StoredVectors(_Contrastive(tower, TowerEmbedder(tower)), cache)
    if kind == "contrastive":
        files = find_model(named or str(SHIPPED))
        return StoredVectors(_Contrastive(files, Embedder(files)), cache)
    files = find_model(model)
    transformers: Any = import_module("transformers")
    with explained(f"model {files.name!r} cannot be loaded"):
        config = pretrained(transformers.AutoConfig, files)
    if hasattr(config, "text_config") and hasattr(config, "vision_config"):
        return StoredVectors(_Contrastive(files, Embedder(files)), cache)
    return StoredVectors(_Vision(files) if pictures else _Sentences(files), cache)


class _Pixels:
    name, size = PIXELS

    def embed(self, examples: Sequence[Example]) -> Vectors:
        return picture_vectors(
            picture for batch in batches(examples) for part in opened_pictures(batch) for picture in part
        )


class _Contrastive:
    """The picture tower of a CLIP or SigLIP model, or its text tower for texts."""

    def __init__(self, files: ModelFiles, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name, self.size = f"{files.name}-{files.version}", encoder.size

    def embed(self, examples: Sequence[Example]) -> Vectors:
        if examples[0].image is not None:
            return self._encoder.images(examples)
        return self._encoder.texts([example.text or "" for example in examples])


class _Loaded:
    """Any transformers model, of which the last hidden states are pooled."""

    def __init__(self, files: ModelFiles) -> None:
        transformers: Any = import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._files, self._transformers = files, transformers
        with explained(f"model {files.name!r} cannot be loaded"):
            self._model: Any = pretrained(transformers.AutoModel, files).eval()
        config = self._model.config
        self.size = int(getattr(config, "hidden_size", 0) or getattr(config, "hidden_sizes", [0])[-1])
        self.name = f"{files.name}-{files.version}"

    def _unit(self, pooled: Any) -> Vectors:
        import torch

        unit: Vectors = torch.nn.functional.normalize(pooled.float(), dim=-1).numpy()
        if unit.shape[1:] != (self.size,) or not np.isfinite(unit).all():
            raise OracleUnavailable(f"model {self._files.name!r} makes no vectors: choose another embedder")
        return unit


class _Sentences(_Loaded):
    """The mean over a text's tokens, or the first token where the model's folder says so (sentence-transformers)."""

    def __init__(self, files: ModelFiles) -> None:
        super().__init__(files)
        with explained(f"model {files.name!r} has no tokenizer for texts"):
            self._tokenizer: Any = pretrained(self._transformers.AutoTokenizer, files)
        self._first_token = _pools_first_token(Path(files.location))
        positions = getattr(self._model.config, "max_position_embeddings", 512)
        self._length = min(int(positions), 512)

    def embed(self, examples: Sequence[Example]) -> Vectors:
        import torch

        chunks = [np.empty((0, self.size), np.float32)]
        for batch in batches(examples):
            texts = [example.text or "" for example in batch]
            with torch.inference_mode(), explained(f"model {self._files.name!r} fails"):
                tokens = self._tokenizer(
                    texts, padding=True, truncation=True, max_length=self._length, return_tensors="pt"
                )
                states = self._model(**tokens).last_hidden_state
                mask = tokens["attention_mask"][..., None]
                pooled = states[:, 0] if self._first_token else (states * mask).sum(1) / mask.sum(1)
                chunks.append(self._unit(pooled))
        return np.concatenate(chunks)


def _pools_first_token(folder: Path) -> bool:
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(pooling, dict) and pooling.get("pooling_mode_cls_token") is True


class _Vision(_Loaded):
    """What the model pools itself, else the mean over its last states."""

    def __init__(self, files: ModelFiles) -> None:
        super().__init__(files)
        with explained(f"model {files.name!r} takes no pictures"):
            self._pixels = Pixels(pretrained(self._transformers.AutoImageProcessor, files, backend="pil"))

    def embed(self, examples: Sequence[Example]) -> Vectors:
        import torch

        chunks = [np.empty((0, self.size), np.float32)]
        for batch in batches(examples):
            for pictures in opened_pictures(batch):
                with torch.inference_mode(), explained(f"model {self._files.name!r} cannot take the pictures"):
                    output = self._model(**self._pixels(pictures))
                    pooled = getattr(output, "pooler_output", None)
                    states = output.last_hidden_state
                    if pooled is None:
                        pooled = states.mean(dim=1) if states.dim() == 3 else states.mean(dim=(2, 3))
                    chunks.append(self._unit(pooled.flatten(1)))
        return np.concatenate(chunks)


def picture_vectors(pictures: Iterable[Image]) -> Vectors:
    """A plain description: colours and edges on a grid, the edges as histograms of the gradient's direction in cells
    (Dalal and Triggs 2005). Good for pictures that are alike in their layout; a vision model is better for
    photographs."""
    rows = [_vector(np.asarray(picture.convert("RGB").resize((SIDE, SIDE)), np.float64) / 255) for picture in pictures]
    return np.stack(rows) if rows else np.empty((0, SIZE), np.float32)


def _vector(pixels: NDArray[np.float64]) -> NDArray[np.float32]:
    step = SIDE // CELLS
    colours = pixels.reshape(CELLS, step, CELLS, step, 3).mean(axis=(1, 3)) - 0.5
    down, right = np.gradient(pixels.mean(axis=2))
    strength, angle = np.hypot(down, right), np.arctan2(down, right) % np.pi
    direction = np.minimum((angle / np.pi * DIRECTIONS).astype(int), DIRECTIONS - 1)
    edges = np.zeros((CELLS, CELLS, DIRECTIONS), np.float32)
    rows, columns = np.indices(strength.shape) // step
    np.add.at(edges, (rows, columns, direction), strength)
    edges = np.sqrt(edges / (edges.sum() + 1e-6))
    described = np.concatenate([colours.ravel() / (np.linalg.norm(colours) + 1e-6), edges.ravel()])
    vector: NDArray[np.float32] = (described / (np.linalg.norm(described) + 1e-9)).astype(np.float32)
    if not np.isclose(np.linalg.norm(vector), 1, atol=1e-4):  # a picture of one middling grey
        vector = np.full(SIZE, 1 / np.sqrt(SIZE), np.float32)
    return vector


TERMS = "tfidf-1"
MOST_TERMS, MOST_NUMBERS, FITTED_ON = 50_000, 256, 20_000


@dataclass(eq=False)
class TermVectors:
    """TF-IDF of words and pairs of words, reduced by a singular value decomposition. Fitted on the texts of one pool;
    with the state of an earlier one it makes the same vectors."""

    terms: NDArray[np.str_]
    rarity: NDArray[np.float64]
    directions: NDArray[np.float64]
    name: str = TERMS

    @classmethod
    def of(cls, examples: Sequence[Example], state: Mapping[str, NDArray[Any]] | None) -> TermVectors:
        if state is not None and {"terms", "rarity", "directions"} <= set(state):
            return cls(state["terms"], state["rarity"], state["directions"])
        from sklearn.decomposition import TruncatedSVD

        texts = [example.text or "" for example in examples[:: max(1, len(examples) // FITTED_ON)]]
        vectorizer = _vectorizer(max_features=MOST_TERMS, min_df=2 if len(texts) > 50 else 1)
        counted = vectorizer.fit_transform([*texts, "nothing nothing"])  # texts without a word are no error
        numbers = min(MOST_NUMBERS, counted.shape[1] - 1, counted.shape[0] - 1)
        if numbers < 1:
            directions = np.eye(1, counted.shape[1])
        else:
            directions = TruncatedSVD(numbers, random_state=0).fit(counted).components_
        return cls(vectorizer.get_feature_names_out().astype(np.str_), vectorizer.idf_, directions)

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"terms": self.terms, "rarity": self.rarity, "directions": self.directions}

    def vectors(self, examples: Sequence[Example]) -> Vectors:
        vectorizer = _vectorizer(vocabulary={term: place for place, term in enumerate(self.terms.tolist())})
        vectorizer.idf_ = self.rarity
        reduced = vectorizer.transform([example.text or "" for example in examples]) @ self.directions.T
        length = np.linalg.norm(reduced, axis=1, keepdims=True)
        unit: Vectors = (reduced / np.where(length > 0, length, 1)).astype(np.float32)
        return unit


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), **options)
