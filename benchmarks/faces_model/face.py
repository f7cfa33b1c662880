"""Faces as lists of parts, sampled so that what is worth naming is not rare, and which of them are for what.

A `Face` is canonical: a part that would be hidden (hair under a hat, eyes behind dark glasses) holds one fixed value,
so that equal pictures come from equal faces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

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
PARTS: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("parts.json").read_text(encoding="utf-8"))
COLOURS = {
    "hat_colour": HAT_COLOURS,
    "hair_colour": HAIR_COLOURS,
    "top_colour": TOP_COLOURS,
    "skin": SKINS,
    "background": BACKGROUNDS,
}

DARK_GLASSES = frozenset({"KURT", "SUNGLASSES", "WAYFARERS"})
WHITE_COLLARS = frozenset({"COLLAR_SWEATER", "BLAZER_SWEATER", "BOND_SUIT", "SHIRT_WICK"})
OVER_THE_EYEBROWS = frozenset({"BOB", "MIA_WALLACE", "LONG_NOT_TOO_LONG", "WILD", "BIG_HAIR", "STRAIGHT_STRAND"})
OVER_THE_SHOULDERS = frozenset({"DREADS", "CURVY"})

# No face is in two splits: each excludes the faces of those before it.
SHIPPED_SEED = 2015285  # with this one every attribute holds for three of the hundred faces or more
SHIPPED = 100
HELD_OUT = 2000
HELD_OUT_SEED, CHOOSING_SEED, TRAINING_SEED = 11, 12, 13


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


def sample(rng: np.random.Generator) -> Face:
    """One face; the same generator state gives the same face."""
    weights = PARTS | {part: dict.fromkeys(colours, 1) for part, colours in COLOURS.items()}
    return _canonical(Face(**{part.name: _pick(rng, weights[part.name]) for part in fields(Face)}))


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


@cache
def shipped_faces() -> tuple[Face, ...]:
    """The faces of datasets/faces."""
    rng = np.random.default_rng(SHIPPED_SEED)
    return tuple(sample(rng) for _ in range(SHIPPED))


@cache
def held_out_faces() -> tuple[Face, ...]:
    """For the figures in the model card: used neither for training nor for choosing anything."""
    return _fresh(HELD_OUT, HELD_OUT_SEED, set(shipped_faces()))


@cache
def choosing_faces() -> tuple[Face, ...]:
    """For choices: architecture, training time, thresholds."""
    return _fresh(HELD_OUT, CHOOSING_SEED, {*shipped_faces(), *held_out_faces()})


@cache
def training_faces(count: int) -> tuple[Face, ...]:
    return _fresh(count, TRAINING_SEED, {*shipped_faces(), *held_out_faces(), *choosing_faces()})


def _fresh(count: int, seed: int, taken: set[Face]) -> tuple[Face, ...]:
    rng = np.random.default_rng([2015, seed])
    found: list[Face] = []
    while len(found) < count:
        face = sample(rng)
        if face not in taken:
            taken.add(face)
            found.append(face)
    return tuple(found)
