"""Examples and questions for tests: texts with words in them, and pictures of one colour."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from tests.support.fake_openai.mind import COLOURS
from twothirds.models.oracle import Answer, Feature, Label, Verdict
from twothirds.sources.dataset import Example, picture_at

WORDS = ("cat", "dog", "bird", "fish", "tree")


def text_example(text: str, name: str = "") -> Example:
    return Example(name or text, hashlib.sha256(text.encode()).hexdigest(), text=text)


def texts(count: int) -> list[Example]:
    """Each has the words of the bits of its number."""
    return [
        text_example(f"number {number}: " + " ".join(word for bit, word in enumerate(WORDS) if number >> bit & 1))
        for number in range(count)
    ]


def texts_table(folder: Path, count: int) -> Path:
    """The same texts as a data set."""
    path = folder / "texts.csv"
    lines = [f"t{number},{example.text}\n" for number, example in enumerate(texts(count))]
    path.write_text("id,text\n" + "".join(lines), encoding="utf-8")
    return path


def picture_example(folder: Path, colour: str, size: tuple[int, int] = (48, 32), name: str = "") -> Example:
    path = folder / f"{name or colour}.png"
    Image.new("RGB", size, COLOURS[colour]).save(path)
    return picture_at(path)


def labels(words: Iterable[str], examples: Sequence[Example], voter: int = 0) -> list[Label]:
    return [Label(Feature(word, f"It mentions a {word}."), example, voter) for word in words for example in examples]


def wrong(answers: Iterable[Answer]) -> list[Answer]:
    """Labels that do not say what the text says."""
    return [answer for answer in answers if not _is_right(answer)]


def _is_right(answer: Answer) -> bool:
    question = answer.question
    if not isinstance(question, Label):
        return True
    true = question.feature.name in (question.example.text or "")
    return answer.verdict is (Verdict.YES if true else Verdict.NO)
