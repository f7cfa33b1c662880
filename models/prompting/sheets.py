"""Several small pictures on one numbered sheet: a model that counts tiles takes as much for it as for one of them.

Nothing is scaled down: pictures that are sent larger than a cell go one by one, and so do moving ones. Cells are
squares, so that the size of a sheet is known from the headers of its pictures, before any of them is decoded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twothirds.models.prompting.pictures import data_url, frames_of, sent_sizes
from twothirds.models.prompting.prompts import ImagePart, Message, Part, SheetPart
from twothirds.models.prompting.tokens import LOW_SIDE, counts_tiles, picture_tokens

if TYPE_CHECKING:
    from PIL.Image import Image

CELL, MOST = 256, 9  # pixels of a picture, and pictures of a sheet, at most
SMALLEST = 32  # pixels of a cell: its number needs them
GUTTER, BAR, FRAME = 8, 28, 1  # pixels between cells, of the bar with the number, and of the line around a picture
DIGITS = 24  # pixels of the font
LONGER, SHORTER = 2048, 768  # pixels: a larger picture would be scaled down by the server
NUMBERED = "Picture {} on the sheet.\n"
TITLE = "The sheet with the numbered pictures:\n"


def size_of(count: int, side: int, columns: int) -> tuple[int, int]:
    rows = -(-count // columns)
    cell = side + 2 * FRAME
    return GUTTER + columns * (cell + GUTTER), GUTTER + rows * (cell + BAR + GUTTER)


def on_sheets(messages: Sequence[Message], model: str, detail: str, image_size: int, frames: int) -> list[Message]:
    """The messages with their pictures on sheets, where that takes fewer tokens."""
    return [Message(message.role, _on_sheets(message.parts, model, detail, image_size, frames)) for message in messages]


def _on_sheets(parts: tuple[Part, ...], model: str, detail: str, image_size: int, frames: int) -> tuple[Part, ...]:
    pictures = [part.example for part in parts if isinstance(part, ImagePart)]
    sizes = [sent_sizes(example, image_size, frames) for example in pictures]
    if len(pictures) < 2 or not counts_tiles(model) or any(len(found) > 1 for found in sizes):
        return parts
    side = max(SMALLEST, *(max(size) for [size] in sizes))
    if side > CELL:
        return parts
    count = -(-len(pictures) // MOST)
    edges = [len(pictures) * place // count for place in range(count + 1)]
    sheets = [
        SheetPart(tuple(pictures[start:end]), side, _columns(end - start, side, model, detail))
        for start, end in itertools.pairwise(edges)
    ]
    if not all(sheet.columns for sheet in sheets) or tokens_of(sheets, model, detail) >= sum(
        picture_tokens(model, *size, detail) for [size] in sizes
    ):
        return parts
    return tuple(_replaced(parts, sheets))


def _columns(count: int, side: int, model: str, detail: str) -> int:
    """Those that take the fewest tokens, on the most even sheet; none where the server would scale each sheet down."""
    sizes = {columns: size_of(count, side, columns) for columns in range(1, count + 1)}
    longer, shorter = (LOW_SIDE, LOW_SIDE) if detail == "low" else (LONGER, SHORTER)
    sharp = [columns for columns, size in sizes.items() if max(size) <= longer and min(size) <= shorter]
    return min(
        sharp, key=lambda columns: (picture_tokens(model, *sizes[columns], detail), max(sizes[columns])), default=0
    )


def tokens_of(sheets: Sequence[SheetPart], model: str, detail: str) -> int:
    """By the published rule, which is exact for a model that is listed."""
    return sum(
        picture_tokens(model, *size_of(len(sheet.examples), sheet.side, sheet.columns), detail) for sheet in sheets
    )


def _replaced(parts: Sequence[Part], sheets: Sequence[SheetPart]) -> list[Part]:
    """Each picture gives way to its number; a sheet stands where the last of its pictures stood."""
    places = [(sheet, number) for sheet in sheets for number in range(1, len(sheet.examples) + 1)]
    replaced, numbered = list[Part](), iter(places)
    for part in parts:
        if not isinstance(part, ImagePart):
            replaced.append(part)
            continue
        sheet, number = next(numbered)
        replaced.append(NUMBERED.format(number))
        if number == len(sheet.examples):
            replaced += [TITLE, sheet]
    return replaced


def sheet_url(sheet: SheetPart) -> str:
    """Raises DatasetError for what is not an image."""
    return data_url(drawn(sheet, [frames_of(example, sheet.side, 1)[0] for example in sheet.examples]))


def drawn(sheet: SheetPart, pictures: Sequence[Image]) -> Image:
    """On white: over each picture a black bar with its number in white, around it a line."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", size_of(len(pictures), sheet.side, sheet.columns), "white")
    draw, font, cell = ImageDraw.Draw(page), ImageFont.load_default(DIGITS), sheet.side + 2 * FRAME
    for place, picture in enumerate(pictures):
        row, column = divmod(place, sheet.columns)
        left, top = GUTTER + column * (cell + GUTTER), GUTTER + row * (cell + BAR + GUTTER)
        right, bottom = left + picture.width + 2 * FRAME, top + BAR + picture.height + 2 * FRAME
        draw.rectangle((left, top, left + cell - 1, top + BAR - 1), "black")
        draw.rectangle((left, top + BAR, right - 1, bottom - 1), "black")
        number = str(place + 1)
        first, above, last, below = draw.textbbox((0, 0), number, font)
        middle = (left + (cell - first - last) // 2, top + (BAR - above - below) // 2)
        draw.text(middle, number, "white", font)
        page.paste(picture.convert("RGB"), (left + FRAME, top + BAR + FRAME))
    return page
