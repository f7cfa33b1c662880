"""Images and phrases as unit vectors of one CLIP or SigLIP model, each computed once.

The vectors of images are cached between runs, per model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from twothirds.models.contrastive.vector_file import VectorFile, Vectors, stored_size
from twothirds.models.local import ModelFiles, pretrained
from twothirds.models.oracle import OracleError, OracleUnavailable, changes_raised
from twothirds.sources import Example, open_image

if TYPE_CHECKING:
    from PIL.Image import Image


BATCH = 64
MAX_BATCH_PIXELS = 64_000_000  # of pictures that are open at a time


class Encoder(Protocol):
    """A loaded model. `sigmoid` is true of SigLIP, whose logits are log-odds; CLIP's only say which text fits best:
    better than each of the `rivals`, or than a negation where there are none."""

    name: str
    size: int  # numbers in a vector
    sigmoid: bool
    scale: float
    bias: float
    rivals: tuple[str, ...]

    def problem_with(self, text: str) -> str | None: ...

    def texts(self, texts: Sequence[str]) -> Vectors: ...

    def images(self, examples: Sequence[Example]) -> Vectors: ...


class Embedder:
    """Both towers of a model, by transformers."""

    rivals: tuple[str, ...] = ()

    def __init__(self, files: ModelFiles) -> None:
        import torch

        transformers: Any = import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.name = files.name
        with explained(f"model {files.name!r} cannot be loaded"):
            config = pretrained(transformers.AutoConfig, files)
            if not (hasattr(config, "text_config") and hasattr(config, "vision_config")):
                raise _not_contrastive(files.name, config.model_type)
            model = pretrained(transformers.AutoModel, files, dtype=torch.float32)
            if not (hasattr(model, "logit_scale") and hasattr(model, "get_image_features")):
                raise _not_contrastive(files.name, config.model_type)
            self._model: Any = model.eval()
            self._tokenizer: Any = pretrained(transformers.AutoTokenizer, files)
            self._pixels = Pixels(pretrained(transformers.AutoImageProcessor, files, backend="pil"))
        self.sigmoid = hasattr(self._model, "logit_bias")
        self.scale = float(self._model.logit_scale.detach().exp())
        self.bias = float(self._model.logit_bias.detach()) if self.sigmoid else 0.0
        self._running = threading.Lock()  # one batch at a time has all cores; others are read and decoded meanwhile
        self._length = int(self._model.config.text_config.max_position_embeddings)
        self.size = self.texts(["a picture"]).shape[1]  # numbers in a vector

    def problem_with(self, text: str) -> str | None:
        """Why the model cannot understand a text: a word it does not know would get an answer that means nothing."""
        tokens = self._tokenizer(text)["input_ids"]
        if len(tokens) > self._length:
            return f"longer than the {self._length} tokens that {self.name} reads"
        unknown = self._tokenizer.unk_token_id
        if unknown is None or unknown in (self._tokenizer.eos_token_id, self._tokenizer.pad_token_id):
            return None  # made of pieces of words: everything can be spelt
        if unknown in tokens or not tokens:
            strange = [word for word in text.split() if unknown in self._tokenizer(word)["input_ids"]]
            return f"{self.name} does not know {', '.join(map(repr, strange)) or 'any word of it'}"
        return None

    def texts(self, texts: Sequence[str]) -> Vectors:
        """SigLIP pools the last position, so every text is padded to the full length."""
        chunks = [np.empty((0, 0), np.float32)]
        for batch in batches(texts):
            padding = "max_length" if self.sigmoid else True
            encoded = self._tokenizer(
                batch, padding=padding, max_length=self._length, truncation=True, return_tensors="pt"
            )
            if self.sigmoid:
                encoded.pop("attention_mask", None)
            chunks.append(self._vectors(self._model.get_text_features, encoded))
        return np.concatenate(chunks[1:] or chunks)

    def images(self, examples: Sequence[Example]) -> Vectors:
        chunks = [np.empty((0, 0), np.float32)]
        for batch in batches(examples):
            for pictures in opened_pictures(batch):
                with explained(f"model {self.name!r} cannot take the pictures"):
                    encoded = self._pixels(pictures)
                chunks.append(self._vectors(self._model.get_image_features, encoded))
        return np.concatenate(chunks[1:] or chunks)

    def _vectors(self, features: Any, encoded: Any) -> Vectors:
        import torch

        with self._running, torch.inference_mode(), explained(f"model {self.name!r} fails"):
            output = features(**encoded)
            pooled = output if isinstance(output, torch.Tensor) else output.pooler_output
            unit: Vectors = torch.nn.functional.normalize(pooled, dim=-1).float().numpy()
            if not np.isfinite(unit).all():
                raise ValueError("its vectors are not numbers")
        return unit


class Embeddings:
    """The vectors of examples and texts: from memory, from the file, or from the model.

    Safe to use from several threads, of which one has the model and the others open their pictures; the model is loaded
    when a vector is needed that is not cached."""

    def __init__(self, load: Callable[[], Encoder], version: str, folder: Path | None) -> None:
        self._load = load
        self._path = folder / version if folder is not None else None
        self._file: VectorFile | None = None
        self._images: dict[str, NDArray[np.float32]] = {}  # those that could not be kept
        self._texts: dict[str, NDArray[np.float32]] = {}
        self._problems: dict[str, str | None] = {}
        self._embedder: Encoder | None = None
        self._lock = threading.RLock()

    @property
    def embedder(self) -> Encoder:
        with self._lock:
            if self._embedder is None:
                self._embedder = self._load()
            return self._embedder

    def images(self, examples: Sequence[Example]) -> Vectors:
        digests = [example.digest for example in examples]
        with self._lock:
            vectors, there = self._find(digests)
        missing = {example.digest: example for example, known in zip(examples, there, strict=True) if not known}
        if not missing:
            return vectors
        if vectors.shape[1] != self.embedder.size:  # the file is not this model's, which is loaded by now
            return self.images(examples)
        new = dict(zip(missing, self.embedder.images(list(missing.values())), strict=True))
        with self._lock:
            if self._file is None or not self._file.add(new):  # it cannot be written
                self._images |= new
        for place in np.flatnonzero(~there).tolist():
            vectors[place] = new[digests[place]]
        return vectors

    def _find(self, digests: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        size = self._size()
        if self._path is not None and (self._file is None or self._file.size != size):
            self._file = VectorFile(self._path, size)
        if self._file is not None:
            vectors, there = self._file.find(digests)
        else:
            vectors, there = np.zeros((len(digests), size), np.float32), np.zeros(len(digests), np.bool_)
        for place in np.flatnonzero(~there).tolist() if self._images else ():
            if digests[place] in self._images:
                vectors[place], there[place] = self._images[digests[place]], True
        return vectors, there

    def _size(self) -> int:
        """Numbers in a vector; the model is not loaded for it where the file tells."""
        size = stored_size(self._path) if self._embedder is None and self._path is not None else None
        return size or self.embedder.size

    def texts(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._texts]
            if missing:
                self._texts |= dict(zip(missing, self.embedder.texts(missing), strict=True))
            return np.stack([self._texts[text] for text in texts])

    def problem_with(self, text: str) -> str | None:
        with self._lock:
            if text not in self._problems:
                self._problems[text] = self.embedder.problem_with(text)
            return self._problems[text]


def batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), BATCH):
        yield list(items[start : start + BATCH])


def opened_pictures(batch: Sequence[Example]) -> Iterator[list[Image]]:
    """The pictures of a batch, in parts where they are so large that they would fill the memory. Raises ExampleChanged
    for one that cannot be opened: whoever reads the data set may leave that to us."""
    pictures, pixels = [], 0
    for example in batch:
        with changes_raised(unreadable=True):
            pictures.append(open_image(example))
        pixels += pictures[-1].width * pictures[-1].height
        if pixels > MAX_BATCH_PIXELS:
            yield pictures
            pictures, pixels = [], 0
    if pictures:
        yield pictures


def _not_contrastive(name: str, kind: str) -> OracleUnavailable:
    return OracleUnavailable(
        f"model {name!r} is a {kind}, not a CLIP or SigLIP: use it as vlm:{name}, or choose another"
    )


@contextmanager
def explained(problem: str) -> Iterator[None]:
    try:
        yield
    except OracleError:
        raise
    except Exception as error:  # model libraries raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise OracleUnavailable(f"{problem} ({reason}): check its files, or choose another model") from error


LEVELS = 256  # of a channel of a pixel


class Pixels:
    """What a processor of transformers would return for pictures in RGB, bit by bit. Where it resizes all pictures to
    one shape, Pillow does so here, without the processor's detour by arrays; where it then looks at one pixel at a
    time, a table of its results replaces it."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._shape = _fixed_shape(processor)
        self._table = _table(processor, self._shape) if self._shape else None

    def __call__(self, pictures: Sequence[Image]) -> Any:
        """By the names of the model's arguments."""
        import torch

        if self._shape is None:
            return self._processor(images=list(pictures), return_tensors="pt")
        shape, resample = self._shape, self._processor.resample
        resized = [picture if picture.size == shape else picture.resize(shape, resample) for picture in pictures]
        if self._table is None:
            return self._processor(images=resized, do_resize=False, return_tensors="pt")
        return {"pixel_values": torch.from_numpy(_looked_up(self._table, resized))}


def _fixed_shape(processor: Any) -> tuple[int, int] | None:
    """Width and height to which it resizes every picture, whatever shape that has; None where it does otherwise."""
    size = processor.size
    by_edge = any(getattr(size, name, None) for name in ("shortest_edge", "longest_edge", "max_height", "max_width"))
    width, height = getattr(size, "width", None), getattr(size, "height", None)
    plain = processor.do_resize and isinstance(processor.resample, int) and not by_edge
    return (width, height) if plain and width and height else None


def _table(processor: Any, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """What the processor makes of each level of each channel. None where that is not all it does to a picture of its
    shape: it crops it, pads it, or looks at several pixels at a time, as noise would show."""
    from PIL import Image

    def processed(pixels: NDArray[np.uint8]) -> dict[str, Any]:
        return dict(processor(images=[Image.fromarray(pixels)], do_resize=False, return_tensors="np"))

    levels = np.arange(LEVELS, dtype=np.uint8).reshape(16, 16, 1)
    found = processed(np.repeat(levels, 3, axis=2)).get("pixel_values")
    if found is None or found.shape != (1, 3, 16, 16) or found.dtype != np.float32:
        return None
    table: NDArray[np.float32] = found.reshape(3, LEVELS)
    noise = np.random.default_rng(0).integers(LEVELS, size=(shape[1], shape[0], 3), dtype=np.uint8)
    expected = processed(noise)
    same = set(expected) == {"pixel_values"} and np.array_equal(
        expected["pixel_values"], _looked_up(table, [Image.fromarray(noise)])
    )
    return table if same else None


def _looked_up(table: NDArray[np.float32], pictures: Sequence[Image]) -> NDArray[np.float32]:
    """Pictures of one size, each as its channels."""
    width, height = pictures[0].size
    values = np.empty((len(pictures), 3, height, width), np.float32)
    for picture, of_picture in zip(pictures, values, strict=True):
        for channel, of_level, into in zip(picture.split(), table, of_picture, strict=True):
            np.take(of_level, np.asarray(channel), out=into, mode="clip")  # the default writes by way of a buffer
    return values
