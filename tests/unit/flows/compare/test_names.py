"""What the oracles of a comparison are called."""

from __future__ import annotations

import pytest

from twothirds.flows.compare.preparation import told_apart

SERVER = "openai:m?base_url=http://localhost:1/v1"


@pytest.mark.parametrize(
    ("short", "texts", "names"),
    [
        (["openai:m", "simulated"], [SERVER, "simulated?flip=0.1"], ["openai:m", "simulated"]),
        (["openai:m"] * 2, [SERVER, f"{SERVER}&detail=low"], ["openai:m", "openai:m?detail=low"]),
        (
            ["openai:m"] * 2,
            [f"{SERVER}&detail=high", f"{SERVER}&detail=low"],
            ["openai:m?detail=high", "openai:m?detail=low"],
        ),
        (["s", "s", "s"], ["s?flip=0.1", "s?flip=0.1&seed=1", "s"], ["s?flip=0.1", "s?flip=0.1&seed=1", "s"]),
    ],
)
def test_oracles_that_share_a_name_are_told_apart_by_what_differs(
    short: list[str], texts: list[str], names: list[str]
) -> None:
    assert told_apart(short, texts) == names
