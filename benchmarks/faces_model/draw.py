"""A face as a picture: drawn by python-avatars, rendered by resvg.

Many faces as arrays: pictures as the model sees them, truth as a matrix, phrases as texts."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.progress import track

from benchmarks.faces_model.face import BACKGROUNDS, HAIR_COLOURS, HAT_COLOURS, NO, TOP_COLOURS, Face
from benchmarks.faces_model.truth import visible

VIEW = 'viewBox="0 0 264 280"'
SQUARE_VIEW = 'viewBox="-12 -8 288 288"'  # resvg keeps the aspect ratio, and the tallest hats reach above the canvas


def svg(face: Face) -> str:
    import python_avatars as avatars

    top = avatars.HatType[face.hat] if face.hat != NO else avatars.HairType[face.hair]
    hair_colour = HAIR_COLOURS[face.hair_colour or "brown"]
    drawing: str = avatars.Avatar(
        style=avatars.AvatarStyle.TRANSPARENT,
        top=top,
        hat_color=HAT_COLOURS[face.hat_colour or "red"],
        eyebrows=avatars.EyebrowType[face.eyebrows],
        eyes=avatars.EyeType[face.eyes],
        nose=avatars.NoseType.DEFAULT,
        mouth=avatars.MouthType[face.mouth],
        facial_hair=avatars.FacialHairType[face.facial_hair],
        skin_color=face.skin,
        hair_color=hair_colour,
        facial_hair_color=hair_colour,
        accessory=avatars.AccessoryType[face.eyewear],
        clothing=avatars.ClothingType[face.clothes],
        clothing_color=TOP_COLOURS[face.top_colour],
        shirt_graphic=avatars.ClothingGraphic[face.print or NO],
    ).render()
    if VIEW not in drawing:
        raise ValueError(f"python-avatars no longer draws on {VIEW}: install the version in requirements-dev.txt")
    return drawing.replace('width="264px" height="280px"', "", 1).replace(VIEW, SQUARE_VIEW, 1)


def png(face: Face, size: int) -> bytes:
    import resvg_py

    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg(face),
            width=size,
            height=size,
            background=BACKGROUNDS[face.background],
            skip_system_fonts=True,
        )
    )


DRAWN_SIZE = 160  # as in datasets/faces, so that the model is trained on what it will be shown
SEEN_SIZE = 96


def seen_pixels(face: Face) -> NDArray[np.uint8]:
    """Height, width, three colours: the picture after the image processor has made it smaller."""
    with Image.open(io.BytesIO(png(face, DRAWN_SIZE))) as drawn:
        return np.array(drawn.convert("RGB").resize((SEEN_SIZE, SEEN_SIZE), Image.Resampling.BICUBIC))


def render(faces: Sequence[Face], what: str) -> NDArray[np.uint8]:
    """Faces, height, width, colours; drawn by as many processes as there are processors."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        drawn = pool.map(seen_pixels, faces, chunksize=64)
        return np.stack(list(track(drawn, description=f"drawing {what}", total=len(faces), transient=True)))


def truth_matrix(faces: Sequence[Face]) -> NDArray[np.bool_]:
    """Faces by attributes, in the order of `benchmarks.faces_model.truth.ATTRIBUTES`."""
    return np.array([list(visible(face).values()) for face in faces])
