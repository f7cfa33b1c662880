"""Faces as lists of parts, sampled so that what is worth naming is not rare.

A `Face` is canonical: a part that would be hidden (hair under a hat, eyes behind dark glasses) holds one fixed value,
so that equal pictures come from equal faces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace

import numpy as np

NO = "NONE"

SKINS = ("#FFDBB4", "#EDB98A", "#D08B5B", "#B5713F", "#94603E")
HAIR_COLOURS = {
    "black": "#1F1715",
    "brown": "#6B4028",
    "blonde": "#E8C15A",
    "red": "#C8421A",
    "grey": "#A9ADB2",
}
TOP_COLOURS = {
    "red": "#DB3A3A",
    "blue": "#3578D6",
    "green": "#2E9E5B",
    "yellow": "#F2C830",
    "black": "#22282C",
    "white": "#FFFFFF",
}
HAT_COLOURS = {colour: TOP_COLOURS[colour] for colour in ("red", "blue", "green", "yellow")}
BACKGROUNDS = {"grey": "#CBD0D8", "blue": "#A9D3F5", "yellow": "#FBE7A0", "pink": "#F7C6D6"}

# Weights, not shares: what is worth naming is common enough to be found among a hundred faces.
HATS = {
    NO: 68,
    "HAT": 7,
    "WINTER_HAT_1": 5,
    "WINTER_HAT_2": 6,
    "WINTER_HAT_3": 6,
    "WINTER_HAT_4": 6,
    "TURBAN": 4,
    "HIJAB": 4,
}
HAIRS = {
    NO: 9,
    "SIDES": 5,
    **dict.fromkeys(("BUZZCUT", "CAESAR", "SHORT_FLAT", "SHORT_ROUND"), 4),
    **dict.fromkeys(("POMPADOUR", "QUIFF"), 4),
    **dict.fromkeys(("MOHAWK", "FRIZZLE"), 3),
    "BUN": 6,
    **dict.fromkeys(("BOB", "MIA_WALLACE", "LONG_NOT_TOO_LONG"), 4),
    **dict.fromkeys(("FRO", "FRO_BAND", "CURLY"), 5),
    **dict.fromkeys(("SHORT_DREADS_2", "EINSTEIN_HAIR", "WILD"), 4),
    **dict.fromkeys(("BIG_HAIR", "CURVY", "DREADS"), 5),
    "STRAIGHT_STRAND": 7,
    **dict.fromkeys(("TWIST_LONG_HAIR", "TWIST_LONG_HAIR_2"), 3),
    "FRIDA": 5,
}
FACIAL_HAIRS = {
    NO: 52,
    "BEARD_LIGHT": 10,
    "BEARD_MEDIUM": 11,
    "BEARD_MAGESTIC": 13,
    "MOUSTACHE_FANCY": 8,
    "MOUSTACHE_MAGNUM": 6,
}
EYEWEARS = {
    NO: 46,
    "EYEPATCH": 8,
    "KURT": 7,
    "PRESCRIPTION_1": 8,
    "PRESCRIPTION_2": 8,
    "ROUND": 12,
    "SUNGLASSES": 6,
    "WAYFARERS": 6,
}
EYES = {
    "DEFAULT": 20,
    "CLOSED": 9,
    "HAPPY": 9,
    "HEART": 12,
    "SIDE": 9,
    "SURPRISED": 9,
    "EYE_ROLL": 7,
    "WINK": 10,
    "X_DIZZY": 9,
    "CRY": 10,
}
EYEBROWS = {"DEFAULT": 40, "UNIBROW_NATURAL": 20, "ANGRY_NATURAL": 22, "SAD_CONCERNED_NATURAL": 20}
MOUTHS = {
    "SMILE": 14,
    "BIG_SMILE": 12,
    "TWINKLE": 12,
    "TONGUE": 11,
    "GRIMACE": 12,
    "SAD": 16,
    "SCREAM_OPEN": 10,
    "SERIOUS": 11,
}
CLOTHES = {
    "BLAZER_SHIRT": 7,
    "BLAZER_SWEATER": 7,
    "COLLAR_SWEATER": 8,
    "GRAPHIC_SHIRT": 24,
    "HOODIE": 13,
    "OVERALL": 12,
    "SHIRT_CREW_NECK": 5,
    "SHIRT_V_NECK": 9,
    "BOND_SUIT": 9,
    "SHIRT_WICK": 8,
}
PRINTS = {
    **dict.fromkeys(("BAT", "BEAR", "DEER"), 3),
    **dict.fromkeys(("CUMBIA", "RESIST", "SELENA"), 3),
    **dict.fromkeys(("SKULL", "PIZZA", "DIAMOND"), 3),
}

DARK_GLASSES = frozenset({"KURT", "SUNGLASSES", "WAYFARERS"})
WHITE_COLLARS = frozenset({"COLLAR_SWEATER", "BLAZER_SWEATER", "BOND_SUIT", "SHIRT_WICK"})
OVER_THE_EYEBROWS = frozenset({"BOB", "MIA_WALLACE", "LONG_NOT_TOO_LONG", "WILD", "BIG_HAIR", "STRAIGHT_STRAND"})
OVER_THE_SHOULDERS = frozenset({"DREADS", "CURVY"})


@dataclass(frozen=True, slots=True)
class Face:
    """Names of python-avatars parts and of our colours; NO or "" where there is nothing to see."""

    hat: str
    hat_colour: str
    hair: str
    hair_colour: str  # of the beard too
    facial_hair: str
    eyewear: str
    eyes: str
    eyebrows: str
    mouth: str
    clothes: str
    top_colour: str  # of the tie with SHIRT_WICK
    print: str
    skin: str
    background: str

    @property
    def key(self) -> tuple[str, ...]:
        return astuple(self)


def sample(rng: np.random.Generator) -> Face:
    """One face; the same generator state gives the same face."""
    return _canonical(
        Face(
            hat=_pick(rng, HATS),
            hat_colour=_pick(rng, dict.fromkeys(HAT_COLOURS, 1)),
            hair=_pick(rng, HAIRS),
            hair_colour=_pick(rng, dict.fromkeys(HAIR_COLOURS, 1)),
            facial_hair=_pick(rng, FACIAL_HAIRS),
            eyewear=_pick(rng, EYEWEARS),
            eyes=_pick(rng, EYES),
            eyebrows=_pick(rng, EYEBROWS),
            mouth=_pick(rng, MOUTHS),
            clothes=_pick(rng, CLOTHES),
            top_colour=_pick(rng, dict.fromkeys(TOP_COLOURS, 1)),
            print=_pick(rng, PRINTS),
            skin=_pick(rng, dict.fromkeys(SKINS, 1)),
            background=_pick(rng, dict.fromkeys(BACKGROUNDS, 1)),
        )
    )


def _pick(rng: np.random.Generator, weights: Mapping[str, int]) -> str:
    edges = np.cumsum(list(weights.values()))
    return list(weights)[int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))]


def _canonical(face: Face) -> Face:
    face = replace(face, hat_colour="") if face.hat == NO else replace(face, hair=NO)
    if face.hat == "HIJAB":  # it covers beard and neckline
        face = replace(face, facial_hair=NO, clothes="SHIRT_CREW_NECK")
    if face.hair == NO and face.facial_hair == NO:
        face = replace(face, hair_colour="")
    if face.eyewear in DARK_GLASSES or face.eyewear == "EYEPATCH":
        face = replace(face, eyes="DEFAULT")
    if face.eyewear != NO or face.hair in OVER_THE_EYEBROWS:
        face = replace(face, eyebrows="DEFAULT")
    if face.facial_hair == "BEARD_MAGESTIC" and face.clothes == "BOND_SUIT":  # the beard would cover the bow tie
        face = replace(face, clothes="SHIRT_WICK")
    if face.hair in OVER_THE_SHOULDERS and face.clothes == "HOODIE":  # nothing of the hood would show
        face = replace(face, clothes="SHIRT_CREW_NECK")
    return _with_legible_clothes(face)


def _with_legible_clothes(face: Face) -> Face:
    """Prints, collars and shirts are white, so what lies under them is not."""
    if face.clothes != "GRAPHIC_SHIRT":
        face = replace(face, print="")
    if face.clothes in WHITE_COLLARS and face.top_colour == "white":
        face = replace(face, top_colour="yellow")
    if face.print and face.top_colour in ("white", "yellow"):
        face = replace(face, top_colour={"white": "black", "yellow": "green"}[face.top_colour])
    return face
