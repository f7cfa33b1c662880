"""People's own sentences: `python -m benchmarks.evidence.nlvr FOLDER`.

FOLDER holds NLVR's dev split (Suhr et al. 2017, CC BY 4.0) as comparisons.csv (question, left, right, sentence, holds),
votes.csv (example, feature, worker, label), structured.json and images/. People saw two pictures on the left and two on
the right and wrote a sentence that is true of the left only; five others voted on each picture. It prints how often the
sentences hold, how far people agree, and how well duplicates are recognised. With --out the data is also written as
a data set with tables that `recorded:` reads. Every figure that is beside another was computed twice."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import table
from benchmarks.evidence.duplicates import duplicates_table
from benchmarks.evidence.people import People
from benchmarks.evidence.sentences import meaning
from benchmarks.machine import heading
from discovery import UNKNOWN, Comparison, Kind, interesting_and_distinct
from discovery.statistics import dawid_skene, krippendorff_alpha, vote_columns, wilson
from discovery.strategies import Listed


def share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    return f"{part} of {whole}: {part / max(whole, 1):.1%} ({low:.1%} to {high:.1%})"


def sentences_table(people: People) -> str:
    """How often an answer is one that the paper calls valid: true of all on the left and of none on the right."""
    holds, pictures, right, unanimous, said_so, programs = 0, 0, 0, 0, 0, [0, 0]
    yes = {cell: int(n) for cell, n in zip(people.cells, (people.cast == 1).sum(1), strict=True)}
    for row in people.comparisons:
        sides = [(name, side == "left") for side in ("left", "right") for name in row[side].split()]
        votes = [(yes[name, row["sentence"]], wanted) for name, wanted in sides]
        fits = [(n >= 3) == wanted for n, wanted in votes]
        holds += all(fits)
        unanimous += all(n == (5 if wanted else 0) for n, wanted in votes)
        pictures, right = pictures + len(fits), right + sum(fits)
        said_so += row["holds"] == "1"
        if (program := meaning(row["sentence"], people.reading)) is not None:
            valid = all(program(people.pictures[name]) == wanted for name, wanted in sides)
            programs = [programs[0] + valid, programs[1] + 1]
    total = len(people.comparisons)
    rows = [
        ["sentence holds of all four pictures, by the majority of five", share(holds, total), f"{said_so} of {total}"],
        ["the same by what is in the pictures (sentences that the grammar covers)", share(*programs), ""],
        ["all 20 votes say so", share(unanimous, total), ""],
        ["pictures that are as the question says", share(right, pictures), _second_pictures(people)],
    ]
    return table(["of 204 left-right questions", "ours", "second count"], rows)


def _second_pictures(people: People) -> str:
    """The same by pandas: a merge instead of look-ups."""
    import pandas as pd

    asked = pd.DataFrame(people.comparisons)
    sides = [
        asked.assign(example=asked[side].str.split(), wanted=wanted).explode("example")
        for side, wanted in (("left", 1), ("right", 0))
    ]
    votes = pd.DataFrame(people.votes).assign(label=lambda one: one["label"].astype(int))
    mode = votes.groupby(["example", "feature"])["label"].median().rename("said").reset_index()
    both = pd.concat(sides).merge(mode, left_on=["example", "sentence"], right_on=["example", "feature"])
    return f"{int((both['said'] == both['wanted']).sum())} of {len(both)}"


def agreement_table(people: People) -> str:
    """Among people, and with what is in the pictures."""
    true, cast = people.truth(people.reading), people.cast
    known = true != UNKNOWN
    majority = np.array([people.majority[cell] for cell in people.cells], np.int8)
    consensus = dawid_skene(cast).labels
    votes = cast[known] != UNKNOWN
    single = (int(((cast[known] == true[known][:, None]) & votes).sum()), int(votes.sum()))
    agreeing = vote_columns(cast).sum(0)
    second = _second_agreement(people, true, known)
    rows = [
        ["two people give the same label", f"{agreeing[0] / agreeing[1]:.4f}", second["pairs"]],
        ["Krippendorff's alpha", f"{float(krippendorff_alpha(cast)):.4f}", second["alpha"]],
        ["one vote is right", share(*single), ""],
        ["the majority of five is right", _right(majority, true, known), second["majority"]],
        ["Dawid–Skene is right", _right(consensus, true, known), second["consensus"]],
        ["majority and Dawid–Skene differ", share(int((majority != consensus).sum()), len(majority)), second["differ"]],
    ]
    return table(["", "ours", "second implementation"], rows)


def _right(said: NDArray[np.int8], true: NDArray[np.int8], known: NDArray[np.bool_]) -> str:
    return share(int((said == true)[known].sum()), int(known.sum()))


def _second_agreement(people: People, true: NDArray[np.int8], known: NDArray[np.bool_]) -> dict[str, str]:
    """By other people's packages: krippendorff, crowd-kit; and pairs of votes one by one."""
    import krippendorff
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, MajorityVote

    floats = np.where(people.cast == UNKNOWN, np.nan, people.cast)
    frame = pd.DataFrame(people.votes)
    frame = frame.assign(task=frame["example"] + "\n" + frame["feature"])[["task", "worker", "label"]]
    found = {"majority": MajorityVote().fit_predict(frame), "consensus": DawidSkene(n_iter=300).fit_predict(frame)}
    labels = {name: np.array([int(one["\n".join(cell)]) for cell in people.cells]) for name, one in found.items()}
    same = [float((votes[:, None] == votes[None]).sum() - 5) / 20 for votes in (row[row >= 0] for row in people.cast)]
    return {
        "pairs": f"{np.mean(same):.4f}",
        "alpha": f"{krippendorff.alpha(floats.T, level_of_measurement='nominal'):.4f} (krippendorff)",
        **{name: f"{int((one == true)[known].sum())} (crowd-kit)" for name, one in labels.items()},
        "differ": f"{int((labels['majority'] != labels['consensus']).sum())} (crowd-kit)",
    }


def readings_table(people: People) -> str:
    words = {True: "exactly two", False: "at least two"}, {True: "right on it", False: "anywhere above"}
    rows = [[words[0][one.exact], words[1][one.adjacent], share(same, n)] for one, same, n in people.readings]
    return table(["“2 towers”", "“a block over a block”", "labels as the majority says"], rows)


def write(people: People, images: Path, folder: Path) -> None:
    """The pictures of towers as a data set, with the tables that `recorded:` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    towers = set(people.towers)
    _write(folder / "nlvr.csv", ("id", "image"), [(name, str((images / name).resolve())) for name in people.towers])
    names = list(people.meanings)
    columns = np.stack([people.meanings[name] for name in names]).T.tolist()
    truth = [(name, *row) for name, row in zip(people.towers, columns, strict=True)]
    _write(folder / "truth.csv", ("id", *names), truth)
    cast = [tuple(row[name] for name in ("example", "feature", "worker", "label")) for row in people.votes]
    _write(folder / "votes.csv", ("example", "feature", "worker", "label"), [row for row in cast if row[0] in towers])
    asked = [
        ("left-right", *("|".join(row[side].split()) for side in ("left", "right")), row["sentence"])
        for row in people.about_towers
    ]
    _write(folder / "comparisons.csv", ("question", "left", "right", "answer"), asked)


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def replay_table(folder: Path, error: float) -> str:
    """A discovery that asks people's recorded questions; labels by what is in the pictures, with people's errors."""
    from flows.discover import DiscoverSettings, prepare, run_discovery
    from reports import Run

    rows = []
    for words, beyond in (("questions that earlier sentences leave open", False), ("all of them", True)):
        with TemporaryDirectory() as place:
            settings = DiscoverSettings(
                dataset=str(folder / "nlvr.csv"),
                oracle=f"recorded:{folder / 'comparisons.csv'}",
                labeller=f"simulated?flip={error:.4f}",
                queries=1_000,
                beyond=beyond,
                store=f"{place}/store.sqlite",
                out=f"{place}/run",
            )
            run_discovery(prepare(settings), run_id="replayed")
            run = Run(Path(place) / "run")
            same = int(run.features["twin"].astype(str).str.startswith("same as ").sum())
            counts = (run.summary.queries, len(run.features), same, run.summary.interesting_distinct)
            rows.append([words, *map(str, counts)])
    return table(["asked", "questions", "sentences", "taken for the same", "interesting and distinct"], rows)


def adaptive_table(people: People, questions: int = 35, seeds: int = 24) -> str:
    """What is found by people's answers to questions that known sentences leave open, and to any."""
    asked = people.about_towers
    row_of = {name: place for place, name in enumerate(people.towers)}

    def rows(names: str) -> tuple[int, ...]:
        return tuple(row_of[name] for name in names.split())

    all_of_them = [Comparison(Kind.LEFT_RIGHT, rows(row["left"]), rows(row["right"])) for row in asked]
    sentence = {one: row["sentence"] for one, row in zip(all_of_them, asked, strict=True)}
    counted: dict[str, list[int]] = {"left open by those known": [], "in any order": []}
    for seed in range(seeds):
        order = [all_of_them[place] for place in np.random.default_rng(seed).permutation(len(all_of_them))]
        chosen, strategy = list[Comparison](), Listed(order)
        while len(chosen) < questions and (now := strategy.next_questions(1)):
            chosen += now
            strategy.learn(now[0], [sentence[now[0]]], [people.meanings[sentence[now[0]]]])
        for words, these in zip(counted, (chosen, order[:questions]), strict=True):
            found = dict.fromkeys(sentence[one] for one in these)
            counted[words].append(sum(interesting_and_distinct([people.meanings[one] for one in found])))
    figures = [(words, np.mean(one), np.std(one, ddof=1) / np.sqrt(seeds)) for words, one in counted.items()]
    means = [[words, f"{mean:.1f} ± {error:.1f}"] for words, mean, error in figures]
    heads = [f"{questions} of {len(all_of_them)} questions", f"interesting and distinct features ({seeds} seeds)"]
    return table(heads, means)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence.nlvr", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "folder", type=Path, help="NLVR's dev split: comparisons.csv, votes.csv, structured.json, images"
    )
    parser.add_argument("--out", type=Path, help="write the pictures of towers as a data set to this folder")
    options = parser.parse_args(arguments)
    people = People.read(options.folder)
    print(heading("python -m benchmarks.evidence.nlvr FOLDER", seed=0))
    print(f"{sentences_table(people)}\n\n{agreement_table(people)}\n")
    covered = {sentence for _, sentence in people.cells if meaning(sentence, people.reading)}
    total = len({sentence for _, sentence in people.cells})
    print(f"The grammar covers {len(covered)} of {total} sentences; the first reading is taken:\n")
    print(f"{readings_table(people)}\n")
    true, known = people.truth(people.reading), people.truth(people.reading) != UNKNOWN
    wrong = (people.cast[known] != true[known][:, None]) & (people.cast[known] != UNKNOWN)
    one = float(wrong.sum() / (people.cast[known] != UNKNOWN).sum())
    majority = np.array([people.majority[cell] for cell in people.cells], np.int8)
    five = float((majority != true)[known].mean())
    said = [row["sentence"] for row in people.about_towers]
    print(f"{duplicates_table(people.meanings, said, {'one vote': one, 'majority of five': five})}\n")
    with TemporaryDirectory() as place:
        folder = options.out or Path(place)
        write(people, options.folder / "images", folder)
        print(f"{replay_table(folder, five)}\n")
    print(adaptive_table(people))


if __name__ == "__main__":
    main()
