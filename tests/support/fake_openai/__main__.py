"""A model server by hand: it prints its address, then serves until it is interrupted.

`python -m tests.support.fake_openai --words cat,dog` answers by the words of texts and the colours of pictures.
`python -m tests.support.fake_openai --lifelike datasets/faces --price 0.15,0.60,0.075` answers about a data set with
truth as a real model does, noise and faults included, and prints at the end what it has charged; so does GET /book."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.support.fake_openai import Abilities, Failings, FakeModel, FakeOpenAI, LifelikeServer
from tests.support.fake_openai.lifelike import lines_of
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--tokens-per-second", type=float, default=0.0, help="of one request (default: any number)")
    parser.add_argument("--slots", type=int, default=0, help="requests that are worked on at a time (default: all)")
    parser.add_argument("--decisions", action="store_true", help="offer the decisions endpoint")
    parser.add_argument("--words", default="", help="the model's vocabulary, separated by commas")
    parser.add_argument("--lifelike", metavar="DATASET", help="answer about this data set, from its truth")
    parser.add_argument("--noise", type=float, default=Failings.label_noise, help="share of labels that are wrong")
    parser.add_argument("--price", type=parse_price, help="USD per million tokens: input,output[,cached]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    speed = {"tokens_per_second": options.tokens_per_second, "slots": options.slots}
    abilities = Abilities(decisions=options.decisions, latency=options.latency, **speed)
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if options.lifelike:
        habits = Failings(label_noise=options.noise)
        terms = {"price": options.price, "seed": options.seed, "abilities": abilities, "port": options.port}
        with LifelikeServer(load_dataset(options.lifelike), habits, **terms) as lifelike:
            print(lifelike.base_url, flush=True)
            signal.sigwait(signals)
            print("\n".join(lines_of(lifelike.summary())), file=sys.stderr)
        return
    with FakeOpenAI(FakeModel([word for word in options.words.split(",") if word]), abilities, options.port) as server:
        print(server.base_url, flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
