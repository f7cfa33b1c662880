"""The fake server alone: `python -m tests.support.fake_openai --latency 0.02` prints its address, then serves."""

from __future__ import annotations

import argparse
import signal

from tests.support.fake_openai import Abilities, FakeOpenAI, Mind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--decisions", action="store_true", help="offer the decisions endpoint")
    parser.add_argument("--words", default="", help="the model's vocabulary, separated by commas")
    options = parser.parse_args()
    mind = Mind([word for word in options.words.split(",") if word])
    abilities = Abilities(decisions=options.decisions, latency=options.latency)
    with FakeOpenAI(mind, abilities, options.port) as server:
        print(server.base_url, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
