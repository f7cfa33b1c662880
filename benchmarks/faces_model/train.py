"""Trains the shipped model from nothing: python -m benchmarks.faces_model.train [--faces N] [--out FOLDER]

It is a SigLIP small enough to ship, with a tokenizer that knows only the words it is trained on.

Plain binary cross-entropy over image times phrase, with SigLIP's scale and bias: one random way of saying each phrase
per step, against every picture of the batch. First the pictures are as drawn, which is learned soon but breaks when a
picture is moved by one pixel; then they are shifted, dimmed and roughened a little.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.faces_model.draw import SEEN_SIZE, render, truth_matrix
from benchmarks.faces_model.face import training_faces
from twothirds.models.contrastive import SHIPPED, TEMPLATES, Phrase, read

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, SiglipModel, SiglipProcessor

FACES, BATCH, WARM_UP = 24_000, 128, 100
TEXT_LENGTH = 16  # SigLIP pools the last position, so every text is padded to this
WIDTH = 128
PATCH = 16
ACTIVATION = "relu"  # no worse here than SigLIP's, and quicker on a processor
PADDING, UNKNOWN = "<pad>", "<unk>"


@dataclass(frozen=True)
class Course:
    epochs: int
    rate: float
    rough: bool


COURSES = (Course(10, 2e-3, rough=False), Course(8, 1.5e-3, rough=True))
TEMPLATE_SHARE, BARE_SHARE = 0.3, 0.3
ARTICLES = {"a", "an", "the"}
SHIFT, DIM, NOISE = 1, 0.1, 0.02  # pixels, share of the contrast, deviation of each value between -1 and 1


def words_of(text: str) -> list[str]:
    return re.sub(r"[\W_]+", " ", text.lower()).split()


def build_tokenizer(phrases: list[Phrase]) -> PreTrainedTokenizerFast:
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import WordLevel

    transformers: Any = import_module("transformers")
    texts = [*TEMPLATES, *(text for phrase in phrases for text in (phrase.name, *phrase.paraphrases))]
    words = sorted({word for text in texts for word in words_of(text)})
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate([PADDING, UNKNOWN, *words])}, UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(Regex(r"[^\p{L}\p{N}]+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        model_max_length=TEXT_LENGTH,
        padding_side="right",
        model_input_names=["input_ids"],
    )
    return fast


def build_processor(tokenizer: PreTrainedTokenizerFast) -> SiglipProcessor:
    transformers: Any = import_module("transformers")
    pictures = transformers.SiglipImageProcessorPil(size={"height": SEEN_SIZE, "width": SEEN_SIZE})
    processor: SiglipProcessor = transformers.SiglipProcessor(pictures, tokenizer)
    return processor


def build_model(words: int) -> SiglipModel:
    from transformers import SiglipConfig, SiglipModel, SiglipTextConfig, SiglipVisionConfig

    text = SiglipTextConfig(
        vocab_size=words,
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=TEXT_LENGTH,
        projection_size=WIDTH,
        pad_token_id=0,
        hidden_act=ACTIVATION,
        bos_token_id=None,
        eos_token_id=None,
    )
    vision = SiglipVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=SEEN_SIZE,
        patch_size=PATCH,
        hidden_act=ACTIVATION,
    )
    return SiglipModel(SiglipConfig(text_config=text.to_dict(), vision_config=vision.to_dict()))


class Phrasing:
    """One random way to say each phrase: its name or a paraphrase, sometimes bare of articles or inside a template."""

    def __init__(self, phrases: list[Phrase], tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.ways = [[phrase.name, *phrase.paraphrases] for phrase in phrases]

    def draw(self, rng: np.random.Generator) -> torch.Tensor:
        return encode(self.tokenizer, [self._say(rng, ways[rng.integers(len(ways))]) for ways in self.ways])

    def _say(self, rng: np.random.Generator, text: str) -> str:
        if rng.random() < BARE_SHARE:
            text = " ".join(word for word in text.split() if word not in ARTICLES)
        if rng.random() < TEMPLATE_SHARE:
            text = TEMPLATES[rng.integers(1, len(TEMPLATES))].format(text)
        return text


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    ids: torch.Tensor = tokenizer(texts, padding="max_length", truncation=True, return_tensors="pt")["input_ids"]
    return ids


def normalised(pictures: NDArray[np.uint8]) -> torch.Tensor:
    """As the image processor does it: half as mean, half as deviation."""
    import torch

    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float().div_(127.5).sub_(1.0)


def roughened(pictures: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """So that another encoding or a slightly other crop of the same drawing looks the same to the model."""
    import torch

    size = pictures.shape[-1]
    top, left = rng.integers(0, 2 * SHIFT + 1, 2)
    padded = torch.nn.functional.pad(pictures, (SHIFT,) * 4, mode="replicate")
    shifted = padded[:, :, top : top + size, left : left + size]
    contrast = torch.from_numpy(rng.uniform(1 - DIM, 1, (len(pictures), 1, 1, 1)).astype(np.float32))
    noise = torch.from_numpy(rng.standard_normal(shifted.shape, dtype=np.float32))
    return shifted * contrast + NOISE * noise


def fit(
    model: SiglipModel,
    phrasing: Phrasing,
    pictures: NDArray[np.uint8],
    truth: NDArray[np.bool_],
    course: Course,
    seed: int,
) -> Iterator[float]:
    """Trains in place and yields the loss of every step."""
    import torch

    rng = np.random.default_rng(seed)
    steps = course.epochs * (len(pictures) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=course.rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    model.train()
    for _ in range(course.epochs):
        order = rng.permutation(len(pictures))
        for start in range(0, len(pictures) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            seen = normalised(pictures[rows])
            if course.rough:
                seen = roughened(seen, rng)
            logits = model(input_ids=phrasing.draw(rng), pixel_values=seen).logits_per_image
            target = torch.from_numpy(truth[rows]).float()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            yield float(loss.detach())
    model.train(False)


def _rate(step: int, steps: int) -> float:
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP)))


def new_model(words: int, seed: int) -> SiglipModel:
    import torch

    torch.manual_seed(seed)
    model = build_model(words)
    with torch.no_grad():
        model.logit_scale.fill_(math.log(10.0))
        model.logit_bias.fill_(-3.0)
    return model


def train(out: Path, faces: int, seed: int = 0) -> None:
    transformers: Any = import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    console = Console(stderr=True)
    started = time.monotonic()
    chosen = training_faces(faces)
    pictures, truth = render(chosen, f"{faces} faces"), truth_matrix(chosen)
    console.print(f"drew {faces} faces in {time.monotonic() - started:.0f} s")
    phrases = list(read(SHIPPED / "vocabulary.json").phrases)
    tokenizer = build_tokenizer(phrases)
    model = new_model(len(tokenizer), seed)
    columns = (TextColumn("training"), BarColumn(), TextColumn("loss {task.fields[loss]:.4f}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        steps = sum(course.epochs for course in COURSES) * (faces // BATCH)
        task = progress.add_task("training", total=steps, loss=math.nan)
        for number, course in enumerate(COURSES):
            for loss in fit(model, Phrasing(phrases, tokenizer), pictures, truth, course, seed + number):
                progress.update(task, advance=1, loss=loss)
    model.save_pretrained(out)
    build_processor(tokenizer).save_pretrained(out)
    console.print(f"trained in {(time.monotonic() - started) / 60:.1f} minutes; the model is in {out}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the vision-language model that ships.")
    parser.add_argument("--faces", type=int, default=FACES)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    chosen = parser.parse_args()
    train(chosen.out, chosen.faces)


if __name__ == "__main__":
    main()
