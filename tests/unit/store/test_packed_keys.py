"""Keys that can be packed."""

from __future__ import annotations

import pytest

from store.packed.keys import digests_of, packable

GOOD = ["ab" * 32, "0f" * 32]


@pytest.mark.parametrize("bad", ["", "ab", "AB" * 32, "g" * 64, "ab" * 31 + " a", "a" * 63, "a" * 65, "é" * 64])
def test_only_digests_are_packed_also_beside_others(bad: str) -> None:
    assert packable(GOOD) == GOOD
    assert packable([GOOD[0], bad, GOOD[1]]) == GOOD
    assert packable([bad]) == []
    assert digests_of([GOOD[0], bad]) == [bytes.fromhex(GOOD[0])]


def test_keys_whose_lengths_add_up_are_told_apart() -> None:
    assert packable(["a" * 63, "a" * 65]) == []
    assert digests_of([]) == []
