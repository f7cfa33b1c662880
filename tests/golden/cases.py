"""The command lines whose results must not change, and how one case is run and its results are gathered."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tests.golden.may_differ import differences, masked
from tests.golden.reading import files_of, read
from tests.support.fake_openai import Failings, LifelikeServer
from tests.support.growing_worlds import TellingWorld
from tests.support.killed import kill_flows
from tests.support.people import TruthfulPerson
from twothirds.flows.cli.app import main
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset
from twothirds.store import Store

DATASETS = Path(__file__).parents[2] / "datasets"
TOLD = "told"  # made-up texts, most of which name what they have
PRICE = "0.15,0.60,0.075"
STORE = "store.sqlite"
WAITING, MOST_ROUNDS = 75, 10  # the status of a command that waits for people, and how often they answer
# One request at a time: what the server says to be cached depends on what came before.
SERVER = f"openai:gpt-4o-mini?base_url={{server}}&price={PRICE}&served_by=golden&concurrency=1&retry_delay=0.01"
# `twothirds`, killed at the moment when so many answers were kept.
KILLED = """
import runpy, sys
from tests.support.killed import kill_after
kill_after(int(sys.argv.pop(1)))
runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
"""


@dataclass
class Workspace:
    """The folder of a case, which is the current one while it runs, and what came of its commands so far."""

    folder: Path
    server: LifelikeServer | None
    commands: list[dict[str, Any]]

    def run(self, line: str) -> int:
        """A command line with {server} for the address of the model's server. What is printed counts if it is JSON."""
        words = shlex.split(line.replace("{server}", self.server.base_url if self.server else ""))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = main(words)
        told = {"command": line, "status": status}
        if "--json" in words and printed.getvalue():
            told["printed"] = json.loads(printed.getvalue())
        self.commands.append(told)
        return status


Step = str | Callable[[Workspace], None]


@dataclass(frozen=True)
class Case:
    about: str
    dataset: str
    examples: int
    steps: tuple[Step, ...]
    results: tuple[str, ...]  # the folders and files that are compared
    lifelike: bool = False  # with the lifelike server
    store: str = STORE


def cut(name: str, folder: Path, examples: int, after: int = 0) -> None:
    """So many examples of a shipped data set, with their truth, as a data set of its own."""
    if name == TOLD:
        TellingWorld(folder, examples, ("red", "round"))
        return
    table = "animals.csv" if name == "zoo" else "metadata.csv"
    folder.mkdir(exist_ok=True)
    for file in (table, "truth.csv"):
        frame = pd.read_csv(DATASETS / name / file, dtype=str, keep_default_na=False)
        frame.iloc[after : after + examples].to_csv(folder / file, index=False)
    if table == "metadata.csv":
        (folder / "images").mkdir(exist_ok=True)
        for picture in pd.read_csv(folder / table)["file_name"]:
            shutil.copy(DATASETS / name / picture, folder / picture)


def people_answer(line: str) -> Step:
    """Repeat a command that waits for people, who answer what is asked, until it has come to its end."""

    def step(workspace: Workspace) -> None:
        for _ in range(MOST_ROUNDS):
            if workspace.run(line) != WAITING:
                break
            with Store.open(STORE) as store:
                person = TruthfulPerson(store.queue, "ann", load_dataset("zoo"))
                while person.answer_page():
                    pass

    return step


def next_night(workspace: Workspace) -> None:
    """A row has gone, and four have come."""
    cut("zoo", workspace.folder / "zoo", 27, after=1)


def killed(answers: int, line: str) -> Step:
    """Run a command in a process of its own, which is killed when it has kept so many answers."""

    def step(workspace: Workspace) -> None:
        words = shlex.split(line)
        paths = [place + 1 for place, word in enumerate(words) if word in ("discover", "--store", "--out")]
        for place in paths:  # the process has another current folder
            words[place] = str(workspace.folder / words[place])
        kill_flows(*words, killed_by=(KILLED, str(answers)))

    return step


def calm_and_stormy(workspace: Workspace) -> None:
    """A folder for the run that is left alone, and one for that which is killed."""
    (workspace.folder / "calm").mkdir()
    (workspace.folder / "stormy").mkdir()


def as_undisturbed(workspace: Workspace) -> None:
    """Which fields differ between the run that was killed and resumed, and the one that was left alone, and what both
    have paid. Which answer the kill came after is left to chance, and so is what was counted on the way."""
    calm, stormy = (
        masked({path.name: read(path) for path in sorted(Path(name, "run").iterdir())}, Path(name))
        for name in ("calm", "stormy")
    )
    fields = {line.rpartition(": ")[0] for line in differences(calm, stormy) if not line.startswith("live.jsonl")}
    paid = {name: sum(line["paid"] for line in _books(f"{name}/store.sqlite")) for name in ("calm", "stormy")}
    workspace.commands.append({"differs from the undisturbed run": sorted(fields), "paid": paid})


def corrections(workspace: Workspace) -> None:
    """As a person fills in doubtful.csv."""
    lines = ["id,feature,corrected", "bear,predator,no", "boar,predator,yes", "carp,water animal,yes"]
    (workspace.folder / "corrections.csv").write_text("\n".join(lines), encoding="utf-8")


CROWD = "simulated?flip=0.1&price=0.001"
KILLED_RUN = f"discover zoo --oracle '{CROWD}' --queries 5 --votes 3 --budget 5 --seed 2"

CASES = {
    "discover_faces_model": Case(
        "the shipped model on drawn faces",
        "faces",
        24,
        ("discover faces --oracle contrastive --queries 5 --store store.sqlite --out run",),
        ("run",),
    ),
    "discover_zoo_crowd": Case(
        "a simulated crowd with the default strategy",
        "zoo",
        40,
        (
            f"estimate zoo --oracle '{CROWD}' --queries 8 --json --store store.sqlite",
            f"discover zoo --oracle '{CROWD}' --queries 8 --yes --store store.sqlite --out run",
        ),
        ("run",),
    ),
    "discover_zoo_adaptive_triple": Case(
        "a simulated crowd, questions by adaptive-triple, three votes",
        "zoo",
        40,
        (
            f"discover zoo --oracle '{CROWD}&refuse=0.02' --strategy adaptive-triple --queries 8 --votes 3 --seed 3 "
            "--yes --store store.sqlite --out run",
        ),
        ("run",),
    ),
    "discover_emoji_crowd": Case(
        "a simulated crowd on pictures that are compared in part",
        "emoji",
        60,
        (
            "discover emoji --oracle simulated --queries 8 --elicit-on 30 --label-rest --seed 1 "
            "--store store.sqlite --out run",
        ),
        ("run",),
    ),
    "discover_zoo_server": Case(
        "the lifelike server on texts at a price, within a budget; then reasons for doubtful labels",
        "zoo",
        40,
        (
            f"estimate zoo --oracle '{SERVER}' --queries 8 --json --store store.sqlite",
            f"discover zoo --oracle '{SERVER}' --queries 8 --budget 0.5 --store store.sqlite --out run",
            "features run label mammal --yes --budget 0.1 --json",
            "attributes run --budget 0.1 --json",
            "rationale run --limit 4 --yes --json --store store.sqlite",
        ),
        ("run",),
        lifelike=True,
    ),
    "discover_zoo_small_budget": Case(
        "the lifelike server with a budget that ends the run",
        "zoo",
        40,
        (f"discover zoo --oracle '{SERVER}' --queries 8 --budget 0.002 --store store.sqlite --out run",),
        ("run",),
        lifelike=True,
    ),
    "discover_emoji_server": Case(
        "the lifelike server on pictures at a price, two votes",
        "emoji",
        20,
        (
            f"discover emoji --oracle '{SERVER}&image_size=64' --queries 4 --votes 2 --budget 1 "
            "--store store.sqlite --out run",
        ),
        ("run",),
        lifelike=True,
    ),
    "enrich_twice": Case(
        "a table that grows: a second night with other rows, a third with a new feature, then proposals",
        "zoo",
        24,
        (
            f"enrich zoo --features 'hair; tail: It has a tail.' --oracle '{SERVER}' --budget 1 --workers 1 "
            "--store store.sqlite --out table",
            next_night,
            f"enrich zoo --features 'hair; tail: It has a tail.' --oracle '{SERVER}' --budget 1 --workers 1 "
            "--store store.sqlite --out table",
            f"enrich zoo --features 'hair; tail: It has a tail.; fins' --oracle '{SERVER}' --budget 1 --workers 1 "
            "--backfill --drop-gone --store store.sqlite --out table",
            f"enrich zoo --features 'hair; tail: It has a tail.; fins' --oracle '{SERVER}' --budget 1 --workers 1 "
            "--propose 3 --store store.sqlite --out table",
        ),
        ("table",),
        lifelike=True,
    ),
    "enrich_predicted": Case(
        "labels that are predicted where that is certified, with a cheaper oracle",
        TOLD,
        800,
        (
            "enrich told/world.csv --features 'red; round' --oracle simulated?price=0.001 --agree 0.9 "
            "--budget 2 --store store.sqlite --out table",
            "enrich told/world.csv --features 'red; round' --oracle simulated?price=0.001 --agree 0.9 "
            "--cheap 'simulated?flip=0.02&price=0.00001' --budget 2 --store store.sqlite --out cheaper",
        ),
        ("table", "cheaper"),
    ),
    "compare_oracles": Case(
        "the shipped model beside a simulated crowd",
        "faces",
        12,
        (
            "compare faces --oracles contrastive 'simulated?flip=0.1' --features 'glasses; smile' --votes 3 "
            "--comparisons 5 --draws 100 --yes --store store.sqlite --out compared",
        ),
        ("compared",),
    ),
    "review_by_people": Case(
        "a discovery by people, which waits for them and goes on",
        "zoo",
        16,
        (
            "review invite ann --base-url https://review.example.org --store store.sqlite",
            people_answer(
                "discover zoo --oracle human:zoo?price=0.01 --queries 2 --yes --store store.sqlite --out run"
            ),
            "review status --json --store store.sqlite",
            "review export answers.csv --store store.sqlite",
        ),
        ("run", "answers.csv"),
    ),
    "export_every_format": Case(
        "all formats, then chosen features in two of them",
        "faces",
        12,
        (
            "discover faces --oracle 'simulated?flip=0.1' --queries 4 --votes 3 --store store.sqlite --out run",
            "export run --to all --out exported --json",
            "export run --to wide-csv,features --only interesting --without duplicates --out chosen --json",
        ),
        ("exported", "chosen"),
    ),
    "curation": Case(
        "features and labels changed by hand, with labels asked again",
        "zoo",
        30,
        (
            f"discover zoo --oracle '{CROWD}' --queries 8 --yes --seed 4 --store store.sqlite --out run",
            "features run rename backbone vertebrate --yes --json",
            "features run merge fins aquatic --into 'water animal' --yes --json",
            "features run define predator 'hunts other animals' --yes --budget 1 --json",
            "features run split breathes airborne tail --yes --budget 1 --json",
            "features run split eggs bird insect --no-ask --yes --json",
            "features run drop toothed --yes --json",
            "features run undo --yes --json",
            "features run duplicates --yes --json",
            "labels run set aardvark predator no --by Ann --json",
            "labels run set antelope predator yes --by Ann --json",
            "labels run set antelope predator clear --by Ann --json",
            corrections,
            "labels run import corrections.csv --by Bob --json",
            "labels run list --json",
            "attributes run --yes --json",
            "features run list --json",
            "features run log --json",
            "tree run --json",
            "report run --json",
        ),
        ("run",),
    ),
    "resume_after_kill": Case(
        "a run that is killed and run again ends as one that was left alone, and pays nothing twice",
        "zoo",
        24,
        (
            calm_and_stormy,
            f"{KILLED_RUN} --store calm/store.sqlite --out calm/run",
            "costs --json --store calm/store.sqlite",
            killed(120, f"{KILLED_RUN} --store stormy/store.sqlite --out stormy/run"),
            f"{KILLED_RUN} --store stormy/store.sqlite --out stormy/run",
            as_undisturbed,
        ),
        ("calm/run",),
        store="calm/store.sqlite",
    ),
}


def result_of(case: Case, folder: Path) -> dict[str, Any]:
    """Run it in this empty folder. By name: the commands, every file, the books of the store and of the server."""
    cut(case.dataset, folder / case.dataset, case.examples)
    with ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        server = stack.enter_context(_server(case)) if case.lifelike else None
        workspace = Workspace(folder, server, [])
        for step in case.steps:
            if isinstance(step, str):
                workspace.run(step)
            else:
                step(workspace)
        result: dict[str, Any] = {"commands": workspace.commands, "books": _books(case.store)}
        if server:
            result["books of the server"] = server.summary()
        for name in case.results:
            result |= files_of(folder / name) if (folder / name).is_dir() else {name: read(folder / name)}
    plain: dict[str, Any] = json.loads(json.dumps(masked(result, folder)))
    return plain


@contextmanager
def _server(case: Case) -> Iterator[LifelikeServer]:
    """It knows the whole data set, also what comes later."""
    habits = Failings(slow=0.0)
    with LifelikeServer(load_dataset(str(DATASETS / case.dataset)), habits, price=parse_price(PRICE), seed=1) as server:
        yield server


def _books(store: str) -> list[dict[str, Any]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["costs", "--json", "--store", store]) == 0
    lines: list[dict[str, Any]] = json.loads(printed.getvalue())
    return sorted(lines, key=lambda line: [str(line[key]) for key in ("name", "oracle", "kind")])
