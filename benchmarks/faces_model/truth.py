"""What one can see in a drawn face: for every named attribute whether it holds. Skin tone is not a feature we name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.faces_model.face import (
    BACKGROUNDS,
    DARK_GLASSES,
    HAIR_COLOURS,
    HAT_COLOURS,
    NO,
    TOP_COLOURS,
    WHITE_COLLARS,
    Face,
)

WINTER_HATS = frozenset({"WINTER_HAT_1", "WINTER_HAT_2", "WINTER_HAT_3", "WINTER_HAT_4"})
SHORT = frozenset({"BUZZCUT", "CAESAR", "SHORT_FLAT", "SHORT_ROUND", "POMPADOUR", "QUIFF"})
CHIN_LENGTH = frozenset({"BOB", "MIA_WALLACE", "LONG_NOT_TOO_LONG"})
LONG = frozenset({"BIG_HAIR", "CURVY", "DREADS", "STRAIGHT_STRAND", "TWIST_LONG_HAIR", "TWIST_LONG_HAIR_2"})
EARS_SHOW = frozenset({"SIDES", "MOHAWK", "FRIZZLE", "BUN", "TWIST_LONG_HAIR", "TWIST_LONG_HAIR_2"}) | SHORT
BEARDS = frozenset({"BEARD_LIGHT", "BEARD_MEDIUM", "BEARD_MAGESTIC"})
JACKETS = frozenset({"BLAZER_SHIRT", "BLAZER_SWEATER", "BOND_SUIT", "SHIRT_WICK"})

Sees = Callable[[Face], bool]


def _is(part: str, *kinds: str) -> Sees:
    return lambda face: getattr(face, part) in kinds


def _ears(face: Face) -> bool:
    if face.hat != NO:
        return face.hat in ("HAT", "WINTER_HAT_3", "WINTER_HAT_4")
    return face.hair == NO or face.hair in EARS_SHOW


def _top(colour: str) -> Sees:
    return lambda face: colour == ("white" if face.clothes == "SHIRT_WICK" else face.top_colour)


def _hair_colour(colour: str) -> Sees:
    return lambda face: face.hair != NO and face.hair_colour == colour


ATTRIBUTES: dict[str, Sees] = {
    "headwear": lambda face: face.hat != NO,
    "winter hat": _is("hat", *WINTER_HATS),
    "wide-brimmed hat": _is("hat", "HAT"),
    "turban": _is("hat", "TURBAN"),
    "headscarf": _is("hat", "HIJAB"),
    "ear flaps": _is("hat", "WINTER_HAT_1", "WINTER_HAT_2"),
    "pom-pom": _is("hat", "WINTER_HAT_2", "WINTER_HAT_3"),
    "animal ears": _is("hat", "WINTER_HAT_4"),
    **{f"{colour} hat": _is("hat_colour", colour) for colour in HAT_COLOURS},
    "bald head": lambda face: face.hat == NO and face.hair == NO,
    "short hair": _is("hair", *SHORT),
    "chin-length hair": _is("hair", *CHIN_LENGTH),
    "long hair": _is("hair", *LONG),
    "curly hair": _is("hair", "FRO", "FRO_BAND", "CURLY", "CURVY"),
    "afro": _is("hair", "FRO", "FRO_BAND"),
    "braids or dreadlocks": _is("hair", "DREADS", "TWIST_LONG_HAIR", "TWIST_LONG_HAIR_2"),
    "wild hair": _is("hair", "SHORT_DREADS_2", "EINSTEIN_HAIR", "WILD"),
    "quiff": _is("hair", "POMPADOUR", "QUIFF"),
    "shaved sides": _is("hair", "MOHAWK", "FRIZZLE"),
    "hair bun": _is("hair", "BUN"),
    "hair only at the sides": _is("hair", "SIDES"),
    "headband": _is("hair", "FRO_BAND"),
    "flowers in the hair": _is("hair", "FRIDA"),
    **{f"{colour} hair": _hair_colour(colour) for colour in HAIR_COLOURS},
    "visible ears": _ears,
    "facial hair": lambda face: face.facial_hair != NO,
    "beard": _is("facial_hair", *BEARDS),
    "long beard": _is("facial_hair", "BEARD_MAGESTIC"),
    "moustache only": lambda face: face.facial_hair not in (NO, *BEARDS),
    "glasses": lambda face: face.eyewear not in (NO, "EYEPATCH"),
    "dark glasses": _is("eyewear", *DARK_GLASSES),
    "round glasses": _is("eyewear", "ROUND"),
    "white frames": _is("eyewear", "KURT", "PRESCRIPTION_1"),
    "eye patch": _is("eyewear", "EYEPATCH"),
    "closed eyes": _is("eyes", "CLOSED", "HAPPY"),
    "heart eyes": _is("eyes", "HEART"),
    "crossed-out eyes": _is("eyes", "X_DIZZY"),
    "big white eyes": _is("eyes", "SURPRISED", "EYE_ROLL"),
    "rolling eyes": _is("eyes", "EYE_ROLL"),
    "winking": _is("eyes", "WINK"),
    "tear": _is("eyes", "CRY"),
    "looking sideways": _is("eyes", "SIDE"),
    "joined eyebrows": _is("eyebrows", "UNIBROW_NATURAL"),
    "angry eyebrows": _is("eyebrows", "ANGRY_NATURAL"),
    "worried eyebrows": _is("eyebrows", "SAD_CONCERNED_NATURAL"),
    "smile": _is("mouth", "SMILE", "BIG_SMILE", "TWINKLE", "TONGUE"),
    "open mouth": _is("mouth", "SMILE", "BIG_SMILE", "TONGUE", "SCREAM_OPEN"),
    "tongue out": _is("mouth", "TONGUE"),
    "bared teeth": _is("mouth", "GRIMACE"),
    "sad mouth": _is("mouth", "SAD"),
    "straight mouth": _is("mouth", "SERIOUS"),
    "screaming": _is("mouth", "SCREAM_OPEN"),
    "jacket": _is("clothes", *JACKETS),
    "bow tie": _is("clothes", "BOND_SUIT"),
    "necktie": _is("clothes", "SHIRT_WICK"),
    "white collar": _is("clothes", *WHITE_COLLARS),
    "hoodie": _is("clothes", "HOODIE"),
    "overalls": _is("clothes", "OVERALL"),
    "V-neck": _is("clothes", "SHIRT_V_NECK"),
    "print on the shirt": lambda face: face.print != "",
    "writing on the shirt": _is("print", "CUMBIA", "RESIST", "SELENA"),
    "animal on the shirt": _is("print", "BAT", "BEAR", "DEER"),
    **{f"{colour} top": _top(colour) for colour in TOP_COLOURS},
    **{f"{colour} background": _is("background", colour) for colour in BACKGROUNDS},
}


def visible(face: Face) -> dict[str, bool]:
    return {name: sees(face) for name, sees in ATTRIBUTES.items()}
