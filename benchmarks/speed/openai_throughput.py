"""Labels per second through an OpenAI-compatible oracle, beside a bare asyncio loop with the SDK on the same server.

    python -m benchmarks.speed.openai_throughput [--labels 1000] [--latency 0.05] [--concurrency 16]

The server is the one of the tests, in a process of its own, and answers after a fixed time. The bare loop sends the
request bodies that the oracle sends. Then: tokens per label of each way to group labels into requests, at equal
answers, by the server's own count of one token for four characters and 85 for a picture."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import heading
from models.openai.bounds import Bounds
from models.openai.config import OpenAIConfig, Output
from models.openai.label_groups import Grouping
from models.openai.oracle import OpenAIOracle
from models.openai.probe import Abilities, response_format
from models.oracle import Answer, Feature, Label, Oracle, Verdict, connect
from models.prices import Price
from models.prompting.label_forms import label_form
from models.recorded import Recorded
from sources.dataset import Example, picture_at
from store import Store

TARGET = 0.9  # of the bare loop
WORDS = ("cat", "dog", "bird", "fish", "tree")
COLOURS = ("red", "green", "blue", "grey")
PRICE = Price(Decimal("0.15"), Decimal("0.60"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before every reply of the server")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    options = parser.parse_args()
    print(heading("python -m benchmarks.speed.openai_throughput"))
    with server("--latency", str(options.latency)) as url:
        ratio = throughput(url, options.labels, options.concurrency, options.rounds)
    features = [*WORDS, *COLOURS, *(f"thing number {number}" for number in range(11))]
    with server("--decisions") as url, tempfile.TemporaryDirectory() as folder:
        tokens_per_label(url, "texts", [note(word, number) for word in features for number in range(20)])
        pictures = [picture(Path(folder), word, number) for word in features for number in range(20)]
        tokens_per_label(url, "pictures", pictures)
    if ratio < TARGET:
        raise SystemExit(f"the oracle is at {ratio:.2f} of the bare loop; the target is {TARGET}")


@contextmanager
def server(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.support.fake_openai", "--words", ",".join(WORDS), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield (process.stdout.readline() if process.stdout else "").strip()
    finally:
        process.terminate()
        process.communicate()


def throughput(url: str, count: int, concurrency: int, rounds: int) -> float:
    """The best rate of each way, the ways taking turns so that a busy machine is busy for all of them."""
    questions = [note(WORDS[0], number) for number in range(count)]
    ways: dict[str, Callable[[], float]] = {
        "bare asyncio loop, one per call": partial(timed_bare, url, questions, concurrency),
        "oracle, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=False),
        "oracle and store, one per call": partial(timed_oracle, url, questions, concurrency, "none", kept=True),
        "oracle and store, twenty per call": partial(timed_oracle, url, questions, concurrency, "auto", kept=True),
    }
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for name, timed in ways.items():
            best[name] = max(best[name], count / timed())
    bare = best["bare asyncio loop, one per call"]
    print(f"| {'way':34} | labels/s | of the bare loop |\n|{'-' * 36}|---------:|-----------------:|")
    for name, rate in best.items():
        print(f"| {name:34} | {rate:8.0f} | {rate / bare:16.2f} |")
    return best["oracle and store, one per call"] / bare


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
                return bool(json.loads(reply.choices[0].message.content or "")["1"])

            await ask(bodies[0])
            started = time.perf_counter()
            await asyncio.gather(*(ask(body) for body in bodies))
            return time.perf_counter() - started

    return asyncio.run(run())


def body_of(question: Label) -> dict[str, Any]:
    abilities = Abilities(format="json_schema")
    bounds = Bounds.of(OpenAIConfig("gpt-4o-mini", price=PRICE), abilities)
    form = label_form([question])
    return {
        "model": "gpt-4o-mini",
        "messages": [{"role": one.role, "content": one.text} for one in form.messages],
        "max_completion_tokens": bounds.reply_tokens([question]),
        "seed": 1,
        "response_format": response_format("json_schema", "labels", form.schema),
    }


def timed_oracle(url: str, questions: list[Label], concurrency: int, grouping: Grouping, *, kept: bool) -> float:
    with ExitStack() as stack:
        oracle: Oracle = stack.enter_context(OpenAIOracle(settings(url, "auto", grouping, concurrency)))
        list(oracle.ask([note(WORDS[1], 0)]))
        if kept:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            oracle = recorded(oracle, stack.enter_context(Store.open(f"sqlite:///{folder}/store.sqlite")))
        started = time.perf_counter()
        answers = list(oracle.ask(questions))
        seconds = time.perf_counter() - started
    check(answers, len(questions))
    return seconds


def settings(url: str, output: Output, grouping: Grouping, concurrency: int = 16) -> OpenAIConfig:
    return OpenAIConfig(
        "gpt-4o-mini", url, output=output, grouping=grouping, concurrency=concurrency, timeout=60, price=PRICE
    )


def recorded(oracle: Oracle, store: Store) -> Recorded:
    connect(oracle)
    about = {"name": "throughput", "flow": "benchmark", "dataset": "notes", "oracle": str(oracle.identity)}
    store.runs.begin("throughput", "throughput", **about, settings={})
    return Recorded(oracle, store, run_id="throughput", scope="throughput")


def tokens_per_label(url: str, material: str, questions: list[Label]) -> None:
    """The same labels of twenty examples with twenty features in every form, at equal answers."""
    print(f"\n| {material + ': form':44} | requests | tokens per label |\n|{'-' * 46}|---------:|-----------------:|")
    outputs: list[Output] = ["schema", "decisions"]
    forms: list[tuple[Grouping, str]] = [
        ("none", "one label per call"),
        ("feature", "one feature with twenty examples"),
        ("example", "one example with twenty features"),
    ]
    verdicts = []
    for output in outputs:
        for grouping, name in forms:
            with OpenAIOracle(settings(url, output, grouping, concurrency=20), memory(url, output)) as oracle:
                answers = list(oracle.ask(questions))
            verdicts.append({answer.question: answer.verdict for answer in answers})
            used = sum(answer.usage.input_tokens + answer.usage.output_tokens for answer in answers)
            requests = sum(answer.usage.requests for answer in answers)
            way = "chat" if output == "schema" else "decisions"
            print(f"| {way + ': ' + name:44} | {requests:8} | {used / len(questions):16.1f} |", flush=True)
    assert all(other == verdicts[0] for other in verdicts), "the forms must give equal answers"
    assert set(verdicts[0].values()) == {Verdict.YES, Verdict.NO}


REMEMBERED: dict[Output, dict[str, Any]] = {}


def memory(url: str, output: Output) -> dict[str, Any]:
    """The probes of the server are not counted."""
    known = REMEMBERED.setdefault(output, {})
    with OpenAIOracle(settings(url, output, "none"), known) as oracle:
        oracle.connect()
    return known


def note(word: str, number: int) -> Label:
    words = " ".join(other for bit, other in enumerate(WORDS) if number >> bit & 1)
    text = f"Note {number}: {words}; otherwise nothing worth a mention on this quiet day by the sea."
    example = Example(str(number), hashlib.sha256(text.encode()).hexdigest(), text=text)
    return Label(Feature(word, f"The note mentions a {word} somewhere in its text."), example)


def picture(folder: Path, word: str, number: int) -> Label:
    from PIL import Image

    path = folder / f"{number}.png"
    if not path.exists():
        Image.new("RGB", (64 + number, 64), COLOURS[number % len(COLOURS)]).save(path)
    return Label(Feature(word, f"The picture shows {word}."), picture_at(path, str(number)))


def check(answers: list[Answer], count: int) -> None:
    assert len(answers) == count
    for answer in answers:
        assert isinstance(answer.question, Label)
        true = answer.question.feature.name in (answer.question.example.text or "")
        assert answer.verdict is (Verdict.YES if true else Verdict.NO)


if __name__ == "__main__":
    main()
