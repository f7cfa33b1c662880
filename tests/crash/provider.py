"""A provider that charges for every call and keeps its own book, in a process that nobody kills; and its client."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from tests.crash.boundaries import PAID_CALL, Hook, Moment
from tests.support.asking import ask
from twothirds.models.keys import QuestionKeys
from twothirds.models.oracle import (
    Meter,
    OracleIdentity,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    in_requests,
    replied,
)
from twothirds.models.people.simulated import SimulatedOracle
from twothirds.sources import Example

PRICE = 1_000
WIDTH = 4


@dataclass(frozen=True)
class Charge:
    attempt: int  # in which execution of the run it was asked for
    key: str


class Provider:
    """`with Provider() as provider:` listens at `provider.port`; `provider.book` is what it has charged for."""

    def __init__(self) -> None:
        self.book: list[Charge] = []
        book = self.book

        class Call(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    asked = json.loads(line)
                    book.append(Charge(asked["attempt"], asked["key"]))  # charged, whoever lives to hear the answer
                    try:
                        self.wfile.write(b"done\n")
                    except OSError:
                        return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_about: object) -> None:
                """A client that was killed is no error of the server's."""

        self._server = Server(("127.0.0.1", 0), Call)
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Provider:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def calls(self) -> Counter[str]:
        return Counter(charge.key for charge in self.book)


class PaidOracle:
    """Knows the answers of a simulated crowd, but each is a call that the provider charges for."""

    def __init__(self, mind: SimulatedOracle, port: int, attempt: int, hook: Hook) -> None:
        self._mind = mind
        self._port = port
        self._attempt = attempt
        self._hook = hook
        self.identity: OracleIdentity = replace(mind.identity, kind="provider")
        self.traits = Traits(profile="free", width=WIDTH)
        self._keys = QuestionKeys(self.identity)

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, PRICE, 1)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        with socket.create_connection(("127.0.0.1", self._port)) as line:
            replies = line.makefile("rb")
            for request in requests:
                meter.leaving(request, PRICE)
                (question,) = request.questions
                self._call(line, replies, question)
                yield replied(request, [replace(answer, cost=PRICE) for answer in ask(self._mind, [question])])

    def _call(self, line: socket.socket, replies: Iterable[bytes], question: Question) -> None:
        self._hook(Moment("before", PAID_CALL))
        asked = {"attempt": self._attempt, "key": self._keys.of(question)}
        line.sendall(json.dumps(asked).encode() + b"\n")
        self._hook(Moment("during", PAID_CALL))
        next(iter(replies))
        self._hook(Moment("after", PAID_CALL))
