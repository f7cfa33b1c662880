"""A face as a picture: drawn by python-avatars, rendered by resvg."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from models.faces.face import BACKGROUNDS, HAIR_COLOURS, HAT_COLOURS, NO, TOP_COLOURS, Face

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


def pixels(face: Face, size: int) -> NDArray[np.uint8]:
    """Height, width, three colours."""
    from PIL import Image

    with Image.open(io.BytesIO(png(face, size))) as image:
        return np.asarray(image.convert("RGB"))
