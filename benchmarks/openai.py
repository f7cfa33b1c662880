"""Labels per second through an OpenAI-compatible oracle, beside a bare asyncio loop with the SDK on the same server.

The server is the one of the tests, in a process of its own, and answers after 50 ms. The bare loop sends the request
bodies that the oracle sends. At least 0.9 of its labels a second are wanted of the oracle with a store, one label per
call."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

from benchmarks.machine import tell
from benchmarks.results import Table
from tests.support.asking import ask
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.grouping import Grouping
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.openai.tokens import Pricing
from twothirds.models.oracle import Answer, Feature, Label, Oracle, Question, Verdict
from twothirds.models.prices import Price
from twothirds.models.prompting.labels import label_form
from twothirds.sources.dataset import Example
from twothirds.store import Store

TARGET = 0.9  # of the bare loop
QUICK = {"labels": 200, "rounds": 1}
WORDS = ("cat", "dog", "bird", "fish", "tree")
PRICE = Price(Decimal("0.15"), Decimal("0.60"))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before every reply of the server")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")


def run(options: argparse.Namespace) -> list[Table]:
    with server("--latency", str(options.latency)) as url:
        return [throughput(url, options.labels, options.concurrency, options.rounds)]


@contextmanager
def server(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.support.fake_openai", "--words", ",".join(WORDS), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield (process.stdout.readline() if process.stdout else "").strip()
    finally:
        process.terminate()
        process.communicate()


def throughput(url: str, count: int, concurrency: int, rounds: int) -> Table:
    """The best rate of each way, the ways taking turns so that a busy machine is busy for all of them."""
    questions = [note(WORDS[0], number) for number in range(count)]
    ways: dict[str, Callable[[], float]] = {
        "bare asyncio loop, one per call": partial(timed_bare, url, questions, concurrency),
        "oracle, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=False),
        "oracle and store, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=True),
        "oracle and store, twenty per call": partial(timed_oracle, url, questions, concurrency, "auto", kept=True),
    }
    best = dict.fromkeys(ways, 0.0)
    for number in range(rounds):
        tell(f"throughput, round {number + 1}")
        for name, timed in ways.items():
            best[name] = max(best[name], count / timed())
    bare = best["bare asyncio loop, one per call"]
    ratio = best["oracle and store, one per call"] / bare
    rows = [[name, round(rate), round(rate / bare, 2)] for name, rate in best.items()]
    missed = [f"the oracle is at {ratio:.2f} of the bare loop, {TARGET} is wanted"] if ratio < TARGET else []
    return Table("Labels per second", ["way", "labels/s", "of the bare loop"], rows, [], missed)


def timed_bare(url: str, questions: list[Label], concurrency: int) -> float:
    """The obvious program: a semaphore, gather, and the SDK."""
    from openai import AsyncOpenAI

    bodies = [body_of(question) for question in questions]

    async def run() -> float:
        places = asyncio.Semaphore(concurrency)
        async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

            async def ask(body: dict[str, Any]) -> bool:
                async with places:
                    reply = await client.chat.completions.create(**body)
                return (reply.choices[0].message.content or "").casefold().startswith("yes")

            await ask(bodies[0])
            started = time.perf_counter()
            await asyncio.gather(*(ask(body) for body in bodies))
            return time.perf_counter() - started

    return asyncio.run(run())


def body_of(question: Label) -> dict[str, Any]:
    pricing = Pricing.of(OpenAIConfig("gpt-4o-mini", price=PRICE), Abilities(format="json_schema"))
    form = label_form([question])
    return {
        "model": "gpt-4o-mini",
        "messages": [{"role": message.role, "content": message.text} for message in form.messages],
        "max_completion_tokens": pricing.form([question]).longest,
        "seed": 1,
        "temperature": 0.0,
    }


def timed_oracle(url: str, questions: list[Label], concurrency: int, grouping: Grouping, *, kept: bool) -> float:
    with ExitStack() as stack:
        terms: dict[str, Any] = {"grouping": grouping, "concurrency": concurrency, "timeout": 60, "price": PRICE}
        oracle = stack.enter_context(OpenAIOracle(OpenAIConfig("gpt-4o-mini", url, **terms)))
        list(ask(oracle, [note(WORDS[1], 0)]))
        put: Callable[[list[Question]], Iterator[Answer]] = partial(ask, oracle)
        if kept:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            put = recorded(oracle, stack.enter_context(Store.open(f"sqlite:///{folder}/store.sqlite"))).ask
        started = time.perf_counter()
        answers = list(put([*questions]))
        seconds = time.perf_counter() - started
    check(answers, len(questions))
    return seconds


def recorded(oracle: Oracle, store: Store) -> CachedOracle:
    store.runs.begin(
        "throughput",
        "throughput",
        name="throughput",
        flow="benchmark",
        dataset="notes",
        oracle=str(oracle.identity),
        settings={},
    )
    return CachedOracle(oracle, RunLedger(store, "throughput", "throughput"))


def note(word: str, number: int) -> Label:
    words = " ".join(other for bit, other in enumerate(WORDS) if number >> bit & 1)
    text = f"Note {number}: {words}; otherwise nothing worth a mention on this quiet day by the sea."
    example = Example(str(number), hashlib.sha256(text.encode()).hexdigest(), text=text)
    return Label(Feature(word, f"The note mentions a {word} somewhere in its text."), example)


def check(answers: list[Answer], count: int) -> None:
    assert len(answers) == count
    for answer in answers:
        assert isinstance(answer.question, Label)
        true = answer.question.feature.name in (answer.question.example.text or "")
        assert answer.verdict is (Verdict.YES if true else Verdict.NO)
