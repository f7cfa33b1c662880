"""What people's sentences about NLVR's pictures mean, as programs that are computed from what is in a picture.

A small grammar of the sentences that say how many towers, boxes or objects have some property; what it does not cover
has no meaning here. Two readings are left open by the words, and the votes of people decide between them: does "2
towers" mean exactly two or at least two, and is "a block over a block" the next one or any one higher up?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BOX = 100  # pixels
COLOURS = {"black": "Black", "blue": "#0099ff", "yellow": "Yellow"}
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
MANY = 1_000
SPELLED = (
    (r"^(a|t|at)?\s*least\b", "at least"),
    (r"\batleast\b|^tleast\b", "at least"),
    (r"^ll\b", "all"),
    (r"\b(blccks|blocks)\b", "blocks"),
    (r"\b(squere|squre)\b", "square"),
    (r"\btocuhing\b", "touching"),
    (r"\bthan contains\b", "that contains"),
    (r"\bcolou?rs?\b", "color"),
    (r"\b(items?|objects?)\b", "item"),
    (r"\bblocks\b", "block"),
    (r"\btowers\b", "tower"),
    (r"\bboxes\b|\bgr[ea]y (box|square)\b", "box"),
    (r"\b(square|circle|triangle)s\b", r"\1"),
    (r"\bclosely \b", ""),
    (r"\b(wall|side|edges)\b", "edge"),
    (r"\b(base|bottom)\b", "base"),
)
C = r"(black|blue|yellow)"
Q = r"(no|an|a|(?:exactly |only |at least |more than )?(?:a|one|two|three|four|five|six|seven|\d))"
SHAPE = r"(square|circle|triangle|item)"
BLOCK = r"(?:block|item)"
HAS = r"(?:with|having|which has|that has|that have|which have|that contains?|which contains?|has|have|contains?)"

Item = Mapping[str, Any]
Box = Sequence[Item]  # from the bottom up
Picture = Sequence[Box]
Program = Callable[[Picture], bool]
Holds = Callable[[Any], bool]


@dataclass(frozen=True)
class Reading:
    exact: bool = True  # "2 towers": neither one nor three
    adjacent: bool = True  # "a block over a block": right on it


def picture_of(boxes: Sequence[Sequence[Item]]) -> Picture:
    return [sorted(box, key=lambda item: -item["y_loc"]) for box in boxes]


def is_towers(picture: Picture) -> bool:
    """Stacks of equal squares, rather than scattered shapes."""
    items = [item for box in picture for item in box]
    return {item["type"] for item in items} == {"square"} and len({(i["size"], i["x_loc"]) for i in items}) == 1


def meaning(sentence: str, reading: Reading) -> Program | None:
    """The program of the sentence; None where the grammar does not cover it."""
    text = normalised(sentence)
    for form in (_of_towers, _of_boxes, _of_items):
        program = form(text, reading)
        if program is not None:
            return program
    return None


def normalised(sentence: str) -> str:
    text = re.sub(r"[.,]+", " ", sentence.lower())
    for pattern, words in SPELLED:
        text = re.sub(pattern, words, text)
    return re.sub(r"\s+", " ", text).strip()


def _counts(words: str, reading: Reading) -> Callable[[int], bool]:
    """The numbers that a quantity allows."""
    if words == "no":
        return lambda n: n == 0
    *how, last = words.split()
    number = int(last) if last.isdigit() else NUMBERS.get(last, 1)
    low, high = number, MANY
    if how == ["more", "than"]:
        low = number + 1
    elif how in (["exactly"], ["only"]) or (not how and last not in ("a", "an") and reading.exact):
        high = number
    return lambda n: low <= n <= high


def _matched(pattern: str, text: str) -> tuple[str, ...] | None:
    found = re.fullmatch(pattern, text)
    return None if found is None else tuple(group or "" for group in found.groups())


# towers


def _of_towers(text: str, reading: Reading) -> Program | None:
    if found := _matched(rf"(?:there (?:is|are) |){Q} (?:of the (?:three )?)?(.*?tower.*)", text):
        holds = _tower(found[1], reading)
        if holds is not None:
            return _quantified(found[0], holds, reading)
    if found := _matched(r"(?:the )?tower with (.+?) (?:has) (.+)", text):
        return _some_tower([_block(found[0], reading), _block(found[1], reading)])
    if found := _matched(r"the (top|base) of (?:the|a) (\w+) block tower is (\w+)", text):
        place = _block(f"a {found[2]} block at the {found[0]}", reading)
        return _some_tower([_block(f"exactly {found[1]} block", reading), place])
    if found := _matched(rf"all (?:3 |three )?tower {HAS} (.+)", text):
        holds = _block(found[0], reading)
        return None if holds is None else lambda picture: all(map(holds, picture))
    if found := _matched(rf"there (?:is|are) {Q} {C} block as the (base|top) of a tower(?: with (.+))?", text):
        size = _block(found[3], reading) if found[3] else lambda _: True
        place = _block(f"a {found[1]} block at the {found[2]}", reading)
        both = _all_of([size, place])
        return None if both is None else _quantified(found[0], both, reading)
    if found := _matched(
        rf"there (?:is|are) {Q} {C} (?:block|item) (?:above|over|on|on top of) a {C} (?:block|item)", text
    ):
        quantity, upper, lower = found
        return lambda picture: _counts(quantity, reading)(sum(_above(box, upper, lower, reading) for box in picture))
    if found := _matched(rf"there (?:is|are) {Q} {C} block", text):
        quantity, colour = found
        return lambda picture: _counts(quantity, reading)(
            sum(item["color"] == COLOURS[colour] for box in picture for item in box)
        )
    return None


def _quantified(quantity: str, holds: Holds, reading: Reading) -> Program:
    allowed = _counts(quantity, reading)
    return lambda picture: allowed(sum(holds(box) for box in picture))


def _some_tower(conditions: list[Holds | None]) -> Program | None:
    holds = _all_of(conditions)
    return None if holds is None else lambda picture: any(map(holds, picture))


def _all_of(conditions: Sequence[Holds | None]) -> Holds | None:
    if any(one is None for one in conditions):
        return None
    known = [one for one in conditions if one is not None]
    return lambda thing: all(one(thing) for one in known)


def _tower(text: str, reading: Reading) -> Holds | None:
    """What `black tower`, `three block tower which has …`, `tower with … having …` say of a tower."""
    found = _matched(rf"(?:{C} )?(?:(\w+) block )?tower(?: {HAS} (.+))?", text)
    if found is None:
        return None
    colour, size, rest = found
    conditions: list[Holds | None] = []
    if colour:
        conditions.append(lambda box: {item["color"] for item in box} == {COLOURS[colour]})
    if size:
        conditions.append(_block(f"exactly {size} block", reading) if size in NUMBERS else None)
    conditions += [_block(part, reading) for part in re.split(rf" (?:and it )?{HAS} ", rest)] if rest else []
    return _all_of(conditions)


def _block(text: str, reading: Reading) -> Holds | None:
    """What is said of the blocks of a tower."""
    if found := _matched(rf"(?:{Q} )?{C} (?:block )?(?:at|as) (?:the )?(top|base)|{Q} {C} (base)", text):
        colour, place = (found[1], found[2]) if found[1] else (found[4], found[5])
        end = -1 if place == "top" else 0
        return lambda box: box[end]["color"] == COLOURS[colour]
    if found := _matched(rf"a {C} block (over|above|on top of|on|below|under) a {C} block", text):
        first, how, second = found
        upper, lower = (second, first) if how in ("below", "under") else (first, second)
        return lambda box: _above(box, upper, lower, reading) > 0
    if found := _matched(rf"{Q} (?:{C} )?block( stacked together)?", text):
        quantity, colour, stacked = found
        if stacked:
            return lambda box: _above(box, colour, colour, Reading(adjacent=True)) > 0
        return lambda box: _counts(quantity, reading)(_number(box, colour))
    if found := _matched(rf"only {C} and {C} block", text):
        only = {COLOURS[name] for name in found}
        return lambda box: {item["color"] for item in box} == only
    if text == "block of all 3 color":
        return lambda box: len({item["color"] for item in box}) == len(COLOURS)
    if text in ("only one color", "block of the same color"):
        return lambda box: len({item["color"] for item in box}) == 1
    if found := _matched(r"(.+?) and (.+)", text):
        return _all_of([_block(part, reading) for part in (*re.split(r" (?=a )", found[0]), found[1])])
    return None


def _number(box: Box, colour: str, shape: str = "item") -> int:
    return sum((not colour or i["color"] == COLOURS[colour]) and shape in ("item", i["type"]) for i in box)


def _above(box: Box, upper: str, lower: str, reading: Reading) -> int:
    """How many blocks of one colour lie above one of another."""
    colours = [item["color"] for item in box]
    return sum(
        colours[high] == COLOURS[upper]
        and COLOURS[lower] in (colours[high - 1 : high] if reading.adjacent else colours[:high])
        for high in range(1, len(colours))
    )


# boxes with scattered shapes


def _of_boxes(text: str, reading: Reading) -> Program | None:
    if found := _matched(rf"(?:there (?:is|are) )?{Q} (?:of the )?box {HAS} (.+)", text):
        holds = _contents(found[1], reading)
        one_of = " of the " in text[:20]
        return None if holds is None else _quantified("a" if one_of else found[0], holds, reading)
    if found := _matched(rf"each box {HAS} (.+)|there is (.+) in each box", text):
        holds = _contents(found[0] or found[1], reading)
        return None if holds is None else lambda picture: all(map(holds, picture))
    return None


def _contents(text: str, reading: Reading) -> Holds | None:
    """What is said of the things in a box."""
    if found := _matched(r"(?:item of )?only (?:one|1) color|item of only one color", text):
        return lambda box: len({item["color"] for item in box}) == 1
    if found := _matched(rf"(?:item of )?only {C}(?: and {C})?(?: item| color)?", text):
        only = {COLOURS[name] for name in found if name}
        return lambda box: {item["color"] for item in box} == only
    if found := _matched(rf"{Q} item of all 3 different color", text):
        quantity = found[0]
        return lambda box: _counts(quantity, reading)(len(box)) and len({i["color"] for i in box}) == len(COLOURS)
    if found := _matched(rf"{Q} item which is {C}", text):
        quantity, colour = found
        return lambda box: _counts(quantity, reading)(len(box)) and _number(box, colour) == len(box)
    holds = [_amount(part, reading) for part in re.split(r" and | (?=a \w+ (?:square|circle|triangle|item))", text)]
    return _all_of(holds)


def _amount(text: str, reading: Reading) -> Holds | None:
    found = _matched(rf"{Q} (?:{C} )?(?:{SHAPE}(?: touching the edge)?)", text)
    if found is None:
        return None
    quantity, colour, shape = found
    touching = text.endswith("touching the edge")
    return lambda box: _counts(quantity, reading)(
        _number([item for item in box if not touching or _touches(item, "edge")], colour, shape)
    )


def _of_items(text: str, reading: Reading) -> Program | None:
    found = _matched(
        rf"(?:there (?:is|are) )?{Q} (?:{C} )?{SHAPE}(?: (?:is )?(not )?touching (?:the |any |an |a )?(?:box )?"
        r"(edge|base|corner)(?: of a box)?)?",
        text,
    )
    if found is None:
        return None
    quantity, colour, shape, absent, place = found
    allowed = _counts(quantity, reading)

    def holds(picture: Picture) -> bool:
        items = [i for box in picture for i in box if not place or _touches(i, place) != bool(absent)]
        return allowed(_number(items, colour, shape))

    return holds


def _touches(item: Item, place: str) -> bool:
    across = item["x_loc"] <= 0 or item["x_loc"] + item["size"] >= BOX
    base, top = item["y_loc"] + item["size"] >= BOX, item["y_loc"] <= 0
    return bool({"edge": across or base or top, "base": base, "corner": across and (base or top)}[place])
