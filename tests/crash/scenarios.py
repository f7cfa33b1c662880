"""What the killed processes do, with all but Prefect: discover, enrich, get to know a server, collect its batch, serve
the page."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from openai import AsyncOpenAI
from pydantic import SecretStr

from tests.crash.boundaries import PAID_CALL, Hook, Moment
from tests.crash.provider import PaidOracle
from tests.support.fake_openai.examples import WORDS, labels
from tests.support.fake_openai.examples import texts as word_texts
from tests.support.made import crowd_of, random_truth, texts
from twothirds.discovery import Kind
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich import batches as enrich_batches
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.oracles import build_oracle
from twothirds.flows.reviewing.page import PageSettings, serve
from twothirds.models.cached import CachedOracle
from twothirds.models.crowd import Asks, Crowd, Members
from twothirds.models.keys import QuestionKeys
from twothirds.models.labelling import Elicited, LabelBatch, Votes, collect_answers, collect_votes
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.abilities import Remembered
from twothirds.models.openai.client import Client, ServerReply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Answer, BudgetExhausted, Compare, OracleUnavailable, Question
from twothirds.models.people.simulated import SimulatedOracle
from twothirds.models.prices import Price
from twothirds.sources.dataset import Dataset, Truth
from twothirds.store import Store
from twothirds.store.requests import Requests

TOKEN_PRICE = Price(Decimal("0.15"), Decimal("0.60"))
EXAMPLES, TRAITS, QUERIES, VOTERS = 6, 4, 20, 10
TRUTH = random_truth(EXAMPLES, TRAITS, seed=3)
pd.DataFrame({"warm": [1]}).to_parquet(os.devnull)  # what a run imports late, its children need not import each
RESULTS = ("labels.csv", "labels.parquet", "features.csv", "answers.jsonl")


class Acknowledged:
    """An oracle whose every answer is written down, outside the store, at the moment it is handed over."""

    def __init__(self, oracle: CachedOracle | Crowd, book: int, attempt: int) -> None:
        self._oracle = oracle
        self._book = book
        self._attempt = attempt
        self._keys = QuestionKeys(oracle.identity)

    def __getattr__(self, name: str) -> Any:
        """What is known already is looked up without asking."""
        return getattr(self._oracle, name)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        for answer in self._oracle.ask(questions):
            os.write(self._book, f"{self._attempt} {self._keys.of(answer.question)} {answer.verdict.value}\n".encode())
            yield answer


def forgetful(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """Another scenario on a store that does not write down what is sent: a control, which must be found out."""
    Requests.send = lambda _requests, _run, _owner, at_most, _budget: (set(at_most), False)  # type: ignore[method-assign, assignment]
    scenario: Callable[[dict[str, Any], Hook], dict[str, Any]] = globals()[job.get("otherwise", "discover")]
    return scenario(job, hook)


def discover(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """Discover, and label; the result is in the run folder."""
    folder = Path(job["folder"])
    crowd = crowd_of(TRUTH, seed=1, flip=0.1)
    oracle = PaidOracle(crowd, job["port"], job["attempt"], hook)
    settings = DiscoverSettings(dataset="made", oracle="provider", voters=VOTERS, seed=5)
    columns = tuple(f"feature {number}" for number in range(TRAITS))
    dataset = Dataset("made", "made", texts(EXAMPLES), (), Truth(columns, np.asarray(TRUTH)), "made")
    book = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def compare(asked: Asks, questions: list[Compare]) -> Elicited:
        return collect_answers(Acknowledged(cast("Crowd", asked), book, job["attempt"]), questions)

    def label(asked: Asks, batch: LabelBatch) -> Votes:
        return collect_votes(Acknowledged(cast("Crowd", asked), book, job["attempt"]), batch)

    with Store.open(job["store"], patience=job.get("patience", 20.0)) as store:
        prepared = Prepared(
            settings, dataset, Members.alone(oracle), store, folder / "run", profile=Profile(queries=QUERIES)
        )
        prepared.folder.mkdir(exist_ok=True)
        outcome = run_discovery(prepared, run_id=f"attempt {job['attempt']}", compare=compare, label=label)
    return {"queries": outcome.progress.queries, "features": len(outcome.progress.findings)}


def enrich(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """Label a table of texts; each label is a call that the provider charges for."""
    book = os.open(Path(job["folder"]) / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    attempt = job["attempt"]

    def paid(*about: Any, **more: Any) -> PaidOracle:
        crowd = build_oracle(*about, **more)
        assert isinstance(crowd, SimulatedOracle)
        return PaidOracle(crowd, job["port"], attempt, hook)

    def acknowledged(*about: Any, **more: Any) -> Acknowledged:
        return Acknowledged(CachedOracle(*about, **more), book, attempt)

    vars(enrich_batches).update(build_oracle=paid, CachedOracle=acknowledged)
    settings = EnrichSettings(
        dataset=job["dataset"],
        features=job["features"],
        oracle="simulated",
        store=job["store"],
        out=str(Path(job["folder"]) / "run"),
    )
    return {"added": enrich_with(settings).added}


def batch(job: dict[str, Any], _hook: Hook) -> dict[str, Any]:
    """Send labels to a provider's Batch API and collect them; the answers are the result."""
    folder = Path(job["folder"])
    config = OpenAIConfig("gpt-4o-mini", job["base_url"], SecretStr("none"), price=TOKEN_PRICE, retry_delay=0.01)
    wait = job.get("wait", 100.0)
    by_batch = replace(config, provider_batch=True, batch_poll=0.02, batch_wait=wait, labels_per_request=3, attempts=10)
    book = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    run_id = f"attempt {job['attempt']}"
    with Store.open(job["store"]) as store, OpenAIOracle(by_batch, {}) as oracle:
        store.runs.begin(run_id, "batch", name="batch", flow="test", dataset="made", oracle="openai", settings={})
        paid = CachedOracle(oracle, RunLedger(store, run_id, "batch", budget=job.get("budget")))
        asked = labels(WORDS, word_texts(12))
        bound = sum(request.limit for request in oracle.plan(asked))
        answers = list(Acknowledged(paid, book, job["attempt"]).ask(asked))
    return _labels_written(folder, answers) | {"bound": bound}


def _labels_written(folder: Path, answers: list[Answer]) -> dict[str, Any]:
    said = sorted(json.dumps([answer.question.content, answer.verdict.value]) for answer in answers)
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "labels.json").write_text(json.dumps(said))
    return {"labels": len(said)}


def introduction(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """Find out what a server can do, then ask it for two labels; every request is a paid call."""
    folder = Path(job["folder"])
    reply, post = Client.post, AsyncOpenAI.post

    async def watched(*about: Any) -> ServerReply:
        hook(Moment("before", PAID_CALL))
        came = await reply(*about)
        hook(Moment("after", PAID_CALL))
        return came

    async def posted(*about: Any, **more: Any) -> Any:
        response = await post(*about, **more)
        hook(Moment("during", PAID_CALL))  # the server has charged for it, and nobody has looked at its reply
        return response

    Client.post, AsyncOpenAI.post = watched, posted  # type: ignore[method-assign, assignment]
    config = OpenAIConfig("gpt-4o-mini", job["base_url"], SecretStr("none"), price=TOKEN_PRICE, retry_delay=0.01)
    run_id, memory = f"attempt {job['attempt']}", Remembered(folder / "servers.json")
    with Store.open(job["store"]) as store, OpenAIOracle(config, memory) as oracle:
        store.runs.begin(run_id, "scope", name="n", flow="test", dataset="made", oracle="openai", settings={})
        recorded = CachedOracle(oracle, RunLedger(store, run_id, "scope"))
        return _labels_written(folder, list(recorded.ask(labels(WORDS[:1], word_texts(2)))))


def hostile_config(job: dict[str, Any]) -> OpenAIConfig:
    config = OpenAIConfig("gpt-4o-mini", job["base_url"], SecretStr("none"), price=TOKEN_PRICE, retry_delay=0.001)
    return replace(config, **job["config"])


def hostile(job: dict[str, Any], _hook: Hook) -> dict[str, Any]:
    """Ask a server that may do anything for labels and comparisons, within a budget."""
    dice, folder = random.Random(job["seed"]), Path(job["folder"])
    run_id, examples = f"attempt {job['attempt']}", word_texts(24)
    asked: list[Question] = [*labels(WORDS[: dice.randint(1, 3)], examples[: dice.randint(4, 24)])]
    asked += [Compare(Kind.TWO_OF_THREE, tuple(dice.sample(examples, 3))) for _ in range(dice.randint(0, 6))]
    memory = Remembered(folder / "servers.json")
    with (
        Store.open(job["store"]) as store,
        OpenAIOracle(hostile_config(job), memory) as oracle,
    ):
        answers: list[Answer] = []
        try:
            store.runs.begin(run_id, "scope", name="n", flow="test", dataset="made", oracle="openai", settings={})
            recorded = CachedOracle(oracle, RunLedger(store, run_id, "scope", job["budget"]))
            answers.extend(recorded.ask(dict.fromkeys(asked)))
        except (BudgetExhausted, OracleUnavailable) as error:  # what was charged and booked until then counts
            return {"stopped": type(error).__name__}
    return {"stopped": ""}


def page(job: dict[str, Any], _hook: Hook) -> dict[str, Any]:
    """Serve the review page until it is killed."""
    Path(job["process"]).write_text(str(os.getpid()))
    with Store.open(job["store"]) as store:
        serve(store, PageSettings(port=job["port"], page_size=3, checks=0.0, repeats=0.0))
    return {}
