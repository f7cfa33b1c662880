"""A data set that grows and whose texts tell the traits, now and then in no word that can be learned."""

from __future__ import annotations

import numpy as np

from tests.support.growing_worlds import World

FILLERS = [f"word{number}" for number in range(200)]


class TellingWorld(World):
    """`named` is how often a trait that an example has is named in its text."""

    named = 0.99
    shares: tuple[float, ...] = (0.5, 0.3, 0.15)
    unnamed: tuple[str, ...] = ()  # traits that no text names

    def truth(self, name: str) -> list[int]:
        number = int(name.lstrip("re") or 0)
        drawn = np.random.default_rng([7, number]).random(len(self.traits))
        return [int(value < share) for value, share in zip(drawn, self.shares, strict=False)]

    def write(self) -> None:
        self.texts = {name: self.text(name) for name in self.texts}
        super().write()

    def text(self, name: str) -> str:
        rng = np.random.default_rng([11, int(name.lstrip("re") or 0)])
        words = [str(word) for word in rng.choice(FILLERS, 6)]
        words += [
            trait
            for trait, has in zip(self.traits, self.truth(name), strict=True)
            if has and rng.random() < self.named and trait not in self.unnamed
        ]
        return f"{name} " + " ".join(words)
