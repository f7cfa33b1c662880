"""twothirds beside the tools that users would pick instead: one local server, its own book, ratios only.

    python -m benchmarks.peers --setup all         install the tools, each into an environment of its own
    python -m benchmarks.peers                     everything (half an hour)
    python -m benchmarks.peers --only labels hazards finding
    python -m benchmarks.peers --texts 60 --pictures 0 --rounds 1

Tools are pinned in benchmarks/peers/packages.toml; environments lie in the user's cache folder. The server answers
after a quarter of a second and 5 ms for each token that it writes, and all answers are right unless something else is
said. A tool that is not installed is left out. The exit status is 1 where what is wanted is missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cases import at_least_one, table
from benchmarks.machine import heading
from benchmarks.peers import labelling
from benchmarks.peers.environments import pinned, python_of, set_up
from benchmarks.peers.finding import HYPOTHESAES, OPTIONS, found_by
from benchmarks.peers.running import OURS, TOOLS, Bench, Case, Tool
from benchmarks.peers.styles import STYLES
from benchmarks.price.data import draw_faces, write_texts

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("labels", "hazards", "finding")
DATA = {"zoo": ("datasets/zoo/animals.csv", 0.05), "faces": ("datasets/faces", 1.0)}  # and the budget in USD
Verdicts = list[tuple[str, bool]]


def labels(options: argparse.Namespace, folder: Path) -> Verdicts:
    tools, missing = chosen_tools(options)
    tools = [tool for tool in tools if tool.variant != "cached"]  # it sends what its twin sends
    if missing:
        print("\n".join(missing))
    bench, verdicts = Bench(folder, options.seed), Verdicts()
    for name, count in (("texts", options.texts), ("pictures", options.pictures)):
        if not count or not tools:
            continue
        draw = write_texts(folder, count, options.features, options.seed) if name == "texts" else None
        case = Case(name, draw or draw_faces(folder, count, options.seed), options.features)
        results = labelling.measured(bench, case, tools, options.rounds)
        print(f"\n### {count:,} {name} × {len(case.names)} features\n\n{labelling.speed_table(results)}")
        verdicts += labelling.speed_verdicts(case, results)
    return verdicts


def hazards(options: argparse.Namespace, folder: Path) -> Verdicts:
    """With four requests at a time and a quick server, so that there are many before and after a kill."""
    tools, missing = chosen_tools(options)
    if missing:
        print("\n".join(missing))
    if not tools:
        return []
    bench = Bench(folder, options.seed, concurrency=4, first=0.1, per_token=0.002)
    case = Case("texts", write_texts(folder, options.hazards, options.features, options.seed), options.features)
    results = [labelling.hazards(bench, case, tool) for tool in tools]
    print(f"\n### {options.hazards:,} texts × {len(case.names)} features\n\n{labelling.hazard_table(results)}")
    return labelling.hazard_verdicts(results)


def finding(options: argparse.Namespace, _folder: Path) -> Verdicts:
    _, missing = labelling.installed([Tool(HYPOTHESAES, "with_hypothesaes", "hypothesaes")])
    print("\n".join(missing))
    head = ["way", "attributes found", "features named", "USD spent", "found per USD", "of ours"]
    for title in options.data:
        spec, budget = DATA[title]
        rows, own = list[list[str]](), 0.0
        texts = Path(spec).suffix == ".csv" and python_of("hypothesaes") is not None
        for name in [*OPTIONS, *STYLES, *([HYPOTHESAES] if texts else [])]:
            labelling.tell(f"{title}: {name}")
            path = str(ROOT / spec)
            done = [found_by(name, path, budget, options.seed + number) for number in range(options.seeds)]
            found, usd = np.mean([one.found for one in done]), np.mean([one.usd for one in done])
            spread = np.std([one.found for one in done], ddof=1) / np.sqrt(len(done)) if len(done) > 1 else 0.0
            own = own or float(found / usd)
            named = np.mean([one.named for one in done])
            per = [f"{usd:.4f}", f"{found / usd:,.0f}", f"{found / usd / own:.2f}"]
            rows.append([name, f"{found:.1f} ± {spread:.1f} of {done[0].of}", f"{named:.0f}", *per])
        print(f"\n### {title}, at most {budget:.2f} USD, {options.seeds} seeds\n\n{table(head, rows)}")
    return []


RUN = {"labels": labels, "hazards": hazards, "finding": finding}


def chosen_tools(options: argparse.Namespace) -> tuple[list[Tool], list[str]]:
    wanted = [tool for tool in TOOLS if not options.tools or (tool.environment or OURS.name) in options.tools]
    return labelling.installed(labelling.without_prefect(wanted) if options.plain else wanted)


def parser() -> argparse.ArgumentParser:
    about = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").split("\n")[0])
    about.add_argument("--setup", nargs="+", choices=[*pinned(), "all"], help="install these tools and do nothing else")
    about.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    about.add_argument("--tools", nargs="+", choices=[OURS.name, *pinned()], help="default: all")
    about.add_argument("--texts", type=int, default=300)
    about.add_argument("--pictures", type=int, default=100)
    about.add_argument("--hazards", type=at_least_one, default=120, help="texts of the part about what goes wrong")
    about.add_argument("--features", type=at_least_one, default=20)
    about.add_argument("--rounds", type=at_least_one, default=2, help="the best of so many counts")
    about.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="of the part about finding")
    about.add_argument("--seeds", type=at_least_one, default=3, help="of the part about finding")
    about.add_argument("--seed", type=int, default=0)
    about.add_argument("--plain", action="store_true", help="twothirds without Prefect, which takes seconds to start")
    return about


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if options.setup:
        names = list(pinned()) if "all" in options.setup else options.setup
        failed = {name: problem for name in names if (problem := set_up(name))}
        print("\n".join(f"{name}: {problem}" for name, problem in failed.items()), end="\n" if failed else "")
        return 1 if failed else 0
    print(heading(" ".join(["python -m benchmarks.peers", *arguments]), options.seed), flush=True)
    verdicts = Verdicts()
    for part in options.only:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            verdicts += RUN[part](options, Path(name))
            sys.stdout.flush()
    print("\n".join(f"- {text}: {'met' if met else 'missed'}" for text, met in verdicts))
    return 0 if all(met for _, met in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
