"""The grammar of people's sentences: what each says of pictures that were made by hand."""

from __future__ import annotations

import pytest

from benchmarks.evidence.sentences import Picture, Reading, is_towers, meaning, picture_of

COLOURS = {"k": "Black", "b": "#0099ff", "y": "Yellow"}


def towers(*stacks: str) -> Picture:
    """Letters from the bottom up."""
    return picture_of(
        [
            [
                {"type": "square", "color": COLOURS[letter], "x_loc": 40, "y_loc": 80 - 21 * level, "size": 20}
                for level, letter in enumerate(stack)
            ]
            for stack in stacks
        ]
    )


def shapes(*boxes: str) -> Picture:
    """Colour, shape and place, as in `kt:edge`, separated by spaces."""
    kinds = {"s": "square", "c": "circle", "t": "triangle"}
    places = {"edge": (0, 40), "base": (40, 90), "corner": (0, 90), "middle": (40, 40)}
    return [
        [
            {
                "type": kinds[one[1]],
                "color": COLOURS[one[0]],
                "x_loc": places[one[3:]][0],
                "y_loc": places[one[3:]][1],
                "size": 10,
            }
            for one in box.split()
        ]
        for box in boxes
    ]


@pytest.mark.parametrize(
    ("sentence", "true", "false"),
    [
        ("There is a tower with a yellow block over a blue block", ("kby", "k", "k"), ("kyb", "k", "k")),
        ("There is a tower with a yellow block below a blue block", ("yb", "k", "k"), ("by", "k", "k")),
        ("There are exactly two towers with a blue block at the base", ("by", "bk", "k"), ("b", "b", "b")),
        ("t least two towers have a yellow block at the top", ("by", "ky", "y"), ("by", "k", "k")),
        (
            "there is a tower with exactly two blocks having a blue block at the top.",
            ("kb", "k", "k"),
            ("kkb", "k", "k"),
        ),
        ("There is no yellow block as the base of a tower.", ("ky", "b", "k"), ("yk", "b", "k")),
        ("There is 1 tower with only blue and black blocks", ("bk", "y", "yb"), ("bky", "y", "k")),
        ("ll 3 towers have at least 1 blue block", ("b", "kb", "yb"), ("b", "kb", "y")),
        ("The top of the three blocks tower is blue.", ("kkb", "y", "y"), ("kb", "y", "y")),
        ("There is a black tower.", ("kk", "y", "y"), ("ky", "y", "y")),
        ("There are 3 blue blocks", ("bb", "b", "k"), ("bb", "k", "k")),
        ("There is a tower with a black block and two blue blocks.", ("kbb", "y", "y"), ("kb", "y", "y")),
    ],
)
def test_sentences_about_towers(sentence: str, true: tuple[str, ...], false: tuple[str, ...]) -> None:
    program = meaning(sentence, Reading())
    assert program is not None
    assert program(towers(*true))
    assert not program(towers(*false))


@pytest.mark.parametrize(
    ("sentence", "true", "false"),
    [
        ("there is a blue circle touching an edge", ("bc:edge", "ks:base"), ("bc:middle", "kc:edge")),
        ("there are two blue squares not touching any edge", ("bs:middle bs:middle",), ("bs:middle bs:edge",)),
        ("There is an item touching the corner", ("ys:corner",), ("ys:base", "ys:edge")),
        ("Each box has at least 1 black item", ("ks:edge", "kc:edge"), ("ks:edge", "yt:edge")),
        ("There is a box with only black and yellow items", ("ks:edge yc:edge",), ("ks:edge bc:edge",)),
        ("one of the grey square contains exactly one object which is black", ("ks:edge",), ("ys:edge",)),
        (
            "There is a box with a yellow triangle and 2 black squares.",
            ("yt:edge ks:edge ks:base",),
            ("yt:edge ks:edge",),
        ),
    ],
)
def test_sentences_about_shapes(sentence: str, true: tuple[str, ...], false: tuple[str, ...]) -> None:
    program = meaning(sentence, Reading())
    assert program is not None
    assert program(shapes(*true))
    assert not program(shapes(*false))


def test_what_is_read_in_two_ways_is_read_as_given() -> None:
    three, apart = towers("b", "b", "b"), towers("bky", "k", "k")
    two = "there are two towers with a blue block at the base"
    assert [meaning(two, Reading(exact=exact))(three) for exact in (True, False)] == [False, True]  # type: ignore[misc]
    over = "There is a tower with a yellow block over a blue block"
    assert [meaning(over, Reading(adjacent=near))(apart) for near in (True, False)] == [False, True]  # type: ignore[misc]


def test_what_the_grammar_does_not_cover_has_no_meaning() -> None:
    assert meaning("There are at least two towers with the same height.", Reading()) is None
    assert meaning("", Reading()) is None


def test_towers_are_told_from_scattered_shapes() -> None:
    assert is_towers(towers("kb", "y", "b"))
    assert not is_towers(shapes("ks:edge", "kc:base", "yt:middle"))
