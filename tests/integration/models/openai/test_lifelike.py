"""The lifelike test server is what it says: figures measured with it mean something."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.fake_openai.hardness import hardness
from tests.support.fake_openai.tokens import picture_tokens


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.06])
def test_most_errors_lie_where_an_example_looks_like_the_other_side(noise: float) -> None:
    rng = np.random.default_rng(0)
    view = rng.standard_normal((1_500, 12))
    cuts = [np.quantile(view[:, column], share) for column, share in enumerate((0.5, 0.8, 0.9))]
    truth = view[:, :3] > cuts
    made = hardness(view, truth, noise, seed=0)
    assert made.chance.mean() == pytest.approx(noise, abs=1e-4)
    if noise == 0:
        return
    assert made.chance[made.chance > 0.5].sum() > 0.6 * made.chance.sum()  # by coin there would be none
    assert made.chance.min() == pytest.approx(noise / 10, rel=0.1)  # some come by chance
    for column, cut in enumerate(cuts):
        wrong, far = made.chance[:, column] > 0.5, np.abs(view[:, column] - cut)
        assert far[wrong].mean() < 0.5 * far[~wrong].mean()
        shares = [wrong[truth[:, column] == side].mean() for side in (True, False)]
        assert noise < 0.05 or max(shares) < 4 * min(shares)  # of those that have it as of those that lack it
    again = hardness(view, truth, noise, seed=1)
    assert np.array_equal(made.chance, again.chance)


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", (1024, 1024), "high", 765),  # the examples of OpenAI's own page
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        ("gpt-4o-mini", (512, 512), "auto", 8500),
        ("gpt-4o-mini", (96, 96), "low", 2833),
        ("gpt-4.1-mini", (1024, 1024), "auto", 1659),
    ],
)
def test_pictures_cost_what_openai_says(model: str, size: tuple[int, int], detail: str, tokens: int) -> None:
    assert picture_tokens(model, *size, detail) == tokens
