"""Public tables of people's votes, turned into data sets and tables that `compare` reads.

`python -m benchmarks.discovery.public_votes --bluebirds FILE --rte FILE --leuven FILE --out OUT` takes what you have:
Welinder et al. 2010 and Snow et al. 2008 (columns item, worker, label, truth), De Deyne et al. 2008 (columns exemplar,
feature, rater1 … rater4). The tables are not part of this project."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

BALANCED = 30  # features of the Leuven animals whose shares are nearest to one half


def crowd(path: Path, folder: Path, feature: str, kind: str) -> None:
    """One feature, many workers, and the truth."""
    table = pd.read_csv(path, dtype={"item": str, "worker": str})
    truth = table.drop_duplicates("item").set_index("item")["truth"]
    _examples(folder, list(truth.index), kind)
    pd.DataFrame({"id": truth.index, feature: truth.to_numpy()}).to_csv(folder / "truth.csv", index=False)
    votes = pd.DataFrame(
        {"example": table["item"], "feature": feature, "worker": table["worker"], "label": table["label"]}
    )
    votes.to_csv(folder / "votes.csv", index=False)


def leuven(path: Path, folder: Path) -> None:
    """The features that are nearest to true of one half; all four raters, and rater 4 apart from the others."""
    table = pd.read_csv(path)
    raters = [name for name in table.columns if name.startswith("rater")]
    most = table[raters].sum(axis=1) >= 3  # as the authors count: three of the four
    shares = most.groupby(table["feature"]).mean()
    chosen = (shares - 0.5).abs().sort_values(kind="stable").index[:BALANCED]
    table = table[table["feature"].isin(chosen)]
    _examples(folder, list(dict.fromkeys(table["exemplar"])), "animal")
    long = table.melt(["exemplar", "feature"], raters, var_name="worker", value_name="label")
    long = long.rename(columns={"exemplar": "example"})[["example", "feature", "worker", "label"]]
    long.to_csv(folder / "votes.csv", index=False)
    long[long["worker"] == raters[-1]].to_csv(folder / "one.csv", index=False)
    long[long["worker"] != raters[-1]].to_csv(folder / "others.csv", index=False)


def _examples(folder: Path, names: list[str], kind: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"id": names, "text": [f"{kind} {name}" for name in names]}).to_csv(
        folder / f"{folder.name}.csv", index=False
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("bluebirds", "rte", "leuven"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("public"), metavar="FOLDER")
    given = parser.parse_args()
    if given.bluebirds:
        crowd(given.bluebirds, given.out / "bluebirds", "Indigo Bunting", "picture")
    if given.rte:
        crowd(given.rte, given.out / "rte", "follows", "sentence pair")
    if given.leuven:
        leuven(given.leuven, given.out / "leuven")
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
