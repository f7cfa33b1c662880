"""Labels per second through an OpenAI-compatible oracle, beside a bare asyncio loop with the SDK on the same server.

The server is the one of the tests, in a process of its own, and answers after 50 ms. The bare loop sends the request
bodies that the oracle sends. At least 0.95 of its labels a second are wanted of the oracle with a store, one label per
call, and of the oracle alone at most 1.5 times its processor time."""

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
from typing import Any, NamedTuple

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
from twothirds.models.oracle import Answer, Feature, Label, Question, Verdict
from twothirds.models.prices import Price
from twothirds.sources.dataset import Example
from twothirds.store import Store

TARGET = 0.95  # of the labels a second of the bare loop
PROCESSOR = 1.5  # times its processor time
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
    ways: dict[str, Callable[[], Timing]] = {
        "bare asyncio loop, one per call": partial(timed_bare, url, questions, concurrency),
        "oracle, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=False),
        "oracle and store, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=True),
        "oracle and store, twenty per call": partial(timed_oracle, url, questions, concurrency, "auto", kept=True),
    }
    timings: dict[str, list[Timing]] = {name: [] for name in ways}
    for number in range(rounds):
        tell(f"throughput, round {number + 1}")
        for name, timed in ways.items():
            timings[name].append(timed())
    rates = {name: count / min(timing.seconds for timing in of) for name, of in timings.items()}
    used = {name: min(timing.processor for timing in of) / count * 1_000 for name, of in timings.items()}
    bare, alone, kept, _ = ways
    rows = [
        [
            name,
            round(rates[name]),
            round(rates[name] / rates[bare], 2),
            round(used[name], 2),
            round(used[name] / used[bare], 2),
        ]
        for name in ways
    ]
    missed = []
    if (ratio := rates[kept] / rates[bare]) < TARGET:
        missed.append(f"the oracle is at {ratio:.2f} of the bare loop, {TARGET} is wanted")
    if (times := used[alone] / used[bare]) > PROCESSOR:
        missed.append(f"the oracle takes {times:.2f} times the processor time of the bare loop, {PROCESSOR} is wanted")
    columns = ["way", "labels/s", "of the bare loop", "processor s per 1,000 labels", "times the bare loop"]
    return Table("Labels per second", columns, rows, [], missed)


class Timing(NamedTuple):
    seconds: float
    processor: float  # seconds of this process


@contextmanager
def timed() -> Iterator[Callable[[], Timing]]:
    began, used = time.perf_counter(), time.process_time()
    yield lambda: Timing(time.perf_counter() - began, time.process_time() - used)


def timed_bare(url: str, questions: list[Label], concurrency: int) -> Timing:
    """The obvious program: a semaphore, gather, and the SDK."""
    from openai import AsyncOpenAI

    bodies = [body_of(question) for question in questions]

    async def run() -> Timing:
        places = asyncio.Semaphore(concurrency)
        async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

            async def one(body: dict[str, Any]) -> bool:
                async with places:
                    reply = await client.chat.completions.create(**body)
                return (reply.choices[0].message.content or "").casefold().startswith("yes")

            await one(bodies[0])
            with timed() as timing:
                await asyncio.gather(*(one(body) for body in bodies))
                return timing()

    return asyncio.run(run())


def body_of(question: Label) -> dict[str, Any]:
    form = Pricing.of(OpenAIConfig("gpt-4o-mini", price=PRICE), Abilities(format="json_schema")).form([question])
    return {
        "model": "gpt-4o-mini",
        "messages": [{"role": message.role, "content": message.text} for message in form.messages],
        "max_completion_tokens": form.longest,
        "seed": 1,
        "temperature": 0.0,
    }


def timed_oracle(url: str, questions: list[Label], concurrency: int, grouping: Grouping, *, kept: bool) -> Timing:
    config = OpenAIConfig("gpt-4o-mini", url, grouping=grouping, concurrency=concurrency, timeout=60, price=PRICE)
    with ExitStack() as stack:
        oracle = stack.enter_context(OpenAIOracle(config))
        list(ask(oracle, [note(WORDS[1], 0)]))
        put: Callable[[list[Question]], Iterator[Answer]] = partial(ask, oracle)
        if kept:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            put = recorded(oracle, stack.enter_context(Store.open(f"sqlite:///{folder}/store.sqlite"))).ask
        with timed() as timing:
            answers = list(put([*questions]))
            taken = timing()
    check(answers, len(questions))
    return taken


def recorded(oracle: OpenAIOracle, store: Store) -> CachedOracle:
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
