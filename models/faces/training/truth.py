"""What one can see in a drawn face: for every named attribute whether it holds. Skin tone is not a feature we name."""

from __future__ import annotations

from collections.abc import Callable

from models.faces.training.face import (
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


def _hat(*kinds: str) -> Sees:
    return lambda face: face.hat in kinds


def _hair(*kinds: str) -> Sees:
    return lambda face: face.hair in kinds


def _eyes(*kinds: str) -> Sees:
    return lambda face: face.eyes in kinds


def _mouth(*kinds: str) -> Sees:
    return lambda face: face.mouth in kinds


def _clothes(*kinds: str) -> Sees:
    return lambda face: face.clothes in kinds


def _print(*kinds: str) -> Sees:
    return lambda face: face.print in kinds


def _ears(face: Face) -> bool:
    if face.hat != NO:
        return face.hat in ("HAT", "WINTER_HAT_3", "WINTER_HAT_4")
    return face.hair == NO or face.hair in EARS_SHOW


def _top(colour: str) -> Sees:
    def sees(face: Face) -> bool:
        shirt = "white" if face.clothes == "SHIRT_WICK" else face.top_colour
        return shirt == colour

    return sees


def _hair_colour(colour: str) -> Sees:
    return lambda face: face.hair != NO and face.hair_colour == colour


def _hat_colour(colour: str) -> Sees:
    return lambda face: face.hat_colour == colour


def _background(colour: str) -> Sees:
    return lambda face: face.background == colour


ATTRIBUTES: dict[str, Sees] = {
    "headwear": lambda face: face.hat != NO,
    "winter hat": _hat(*WINTER_HATS),
    "wide-brimmed hat": _hat("HAT"),
    "turban": _hat("TURBAN"),
    "headscarf": _hat("HIJAB"),
    "ear flaps": _hat("WINTER_HAT_1", "WINTER_HAT_2"),
    "pom-pom": _hat("WINTER_HAT_2", "WINTER_HAT_3"),
    "animal ears": _hat("WINTER_HAT_4"),
    **{f"{colour} hat": _hat_colour(colour) for colour in HAT_COLOURS},
    "bald head": lambda face: face.hat == NO and face.hair == NO,
    "short hair": _hair(*SHORT),
    "chin-length hair": _hair(*CHIN_LENGTH),
    "long hair": _hair(*LONG),
    "curly hair": _hair("FRO", "FRO_BAND", "CURLY", "CURVY"),
    "afro": _hair("FRO", "FRO_BAND"),
    "braids or dreadlocks": _hair("DREADS", "TWIST_LONG_HAIR", "TWIST_LONG_HAIR_2"),
    "wild hair": _hair("SHORT_DREADS_2", "EINSTEIN_HAIR", "WILD"),
    "quiff": _hair("POMPADOUR", "QUIFF"),
    "shaved sides": _hair("MOHAWK", "FRIZZLE"),
    "hair bun": _hair("BUN"),
    "hair only at the sides": _hair("SIDES"),
    "headband": _hair("FRO_BAND"),
    "flowers in the hair": _hair("FRIDA"),
    **{f"{colour} hair": _hair_colour(colour) for colour in HAIR_COLOURS},
    "visible ears": _ears,
    "facial hair": lambda face: face.facial_hair != NO,
    "beard": lambda face: face.facial_hair in BEARDS,
    "long beard": lambda face: face.facial_hair == "BEARD_MAGESTIC",
    "moustache only": lambda face: face.facial_hair not in (NO, *BEARDS),
    "glasses": lambda face: face.eyewear not in (NO, "EYEPATCH"),
    "dark glasses": lambda face: face.eyewear in DARK_GLASSES,
    "round glasses": lambda face: face.eyewear == "ROUND",
    "white frames": lambda face: face.eyewear in ("KURT", "PRESCRIPTION_1"),
    "eye patch": lambda face: face.eyewear == "EYEPATCH",
    "closed eyes": _eyes("CLOSED", "HAPPY"),
    "heart eyes": _eyes("HEART"),
    "crossed-out eyes": _eyes("X_DIZZY"),
    "big white eyes": _eyes("SURPRISED", "EYE_ROLL"),
    "rolling eyes": _eyes("EYE_ROLL"),
    "winking": _eyes("WINK"),
    "tear": _eyes("CRY"),
    "looking sideways": _eyes("SIDE"),
    "joined eyebrows": lambda face: face.eyebrows == "UNIBROW_NATURAL",
    "angry eyebrows": lambda face: face.eyebrows == "ANGRY_NATURAL",
    "worried eyebrows": lambda face: face.eyebrows == "SAD_CONCERNED_NATURAL",
    "smile": _mouth("SMILE", "BIG_SMILE", "TWINKLE", "TONGUE"),
    "open mouth": _mouth("SMILE", "BIG_SMILE", "TONGUE", "SCREAM_OPEN"),
    "tongue out": _mouth("TONGUE"),
    "bared teeth": _mouth("GRIMACE"),
    "sad mouth": _mouth("SAD"),
    "straight mouth": _mouth("SERIOUS"),
    "screaming": _mouth("SCREAM_OPEN"),
    "jacket": _clothes(*JACKETS),
    "bow tie": _clothes("BOND_SUIT"),
    "necktie": _clothes("SHIRT_WICK"),
    "white collar": _clothes(*WHITE_COLLARS),
    "hoodie": _clothes("HOODIE"),
    "overalls": _clothes("OVERALL"),
    "V-neck": _clothes("SHIRT_V_NECK"),
    "print on the shirt": lambda face: face.print != "",
    "writing on the shirt": _print("CUMBIA", "RESIST", "SELENA"),
    "animal on the shirt": _print("BAT", "BEAR", "DEER"),
    **{f"{colour} top": _top(colour) for colour in TOP_COLOURS},
    **{f"{colour} background": _background(colour) for colour in BACKGROUNDS},
}


def visible(face: Face) -> dict[str, bool]:
    return {name: sees(face) for name, sees in ATTRIBUTES.items()}
