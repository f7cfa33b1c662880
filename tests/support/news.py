"""Short news with topics, written for tests: what can be told from their words."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pandas as pd

TOPICS = {  # the sentence that is asked, and what the news say with the words of a list in the braces
    "sports": "The text is about sports.",
    "business": "The text is about business or money.",
    "technology": "The text is about computers or technology.",
    "politics": "The text is about politics or government.",
}
NEWS = {
    "sports": (
        "{} won the final by two goals in the last minutes, and the crowd sang until midnight.",
        "The coach of {} will miss the next match after a red card; the team is third in the league.",
        "A knee injury ends the season for the striker of {}, the club's doctor said after training.",
    ),
    "business": (
        "Shares of {} fell by eight percent after the company reported lower sales and a loss for the quarter.",
        "{} will buy a smaller competitor for two billion dollars; investors expect higher profits.",
        "The bank lent {} another forty million, as interest rates and the price of oil are rising.",
    ),
    "technology": (
        "{} released an update that closes a hole in its browser, through which viruses reached computers.",
        "A new chip by {} makes laptops twice as fast and needs half the power, engineers say.",
        "The search engine of {} now reads photos taken by mobile phones and sorts them by software.",
    ),
    "politics": (
        "The parliament of {} voted for the new law after the prime minister had threatened to resign.",
        "Voters in {} elect a president on Sunday; both candidates promised peace with the rebels.",
        "The minister of {} met foreign diplomats to end the conflict at the border, his office said.",
    ),
}
NAMES = {
    "sports": ("Northport United", "Rovers", "the Falcons", "Lakeside", "Real Montana"),
    "business": ("Harlow Foods", "Deltacom", "Brandt and Sons", "Oceanic Lines", "Midland Steel"),
    "technology": ("Pixelworks", "Novasoft", "Quantel", "Bitforge", "Orbit Systems"),
    "politics": ("Norland", "the republic", "Estavia", "the southern province", "Karelmark"),
}


def write_news(folder: Path) -> Path:
    """Sixty of them, topics in turn, with truth.csv beside."""
    said = {topic: [text.format(name) for text, name in product(NEWS[topic], NAMES[topic])] for topic in TOPICS}
    rows = [(topic, text) for turn in zip(*said.values(), strict=True) for topic, text in zip(said, turn, strict=True)]
    ids = [f"n{number}" for number in range(len(rows))]
    pd.DataFrame({"id": ids, "text": [text[:1].upper() + text[1:] for _, text in rows]}).to_csv(
        folder / "news.csv", index=False
    )
    truth = {topic: [int(own == topic) for own, _ in rows] for topic in TOPICS}
    pd.DataFrame({"id": ids, **truth}).to_csv(folder / "truth.csv", index=False)
    return folder / "news.csv"
