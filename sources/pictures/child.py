"""`python -m twothirds.sources.pictures.child` decodes one picture after the other, from its input to its output.

It is ended by the system where a picture takes too much time, and ends itself where one takes too much memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

from twothirds.sources.pictures.images import still_in_this_process
from twothirds.sources.pictures.process import REPLY, REQUEST, exactly


def serve(cpu_seconds: float, memory: int) -> None:
    with suppress(OSError, ValueError):  # macOS does not limit it
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, inside a decoder too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    while request := sys.stdin.buffer.read(REQUEST.size):
        size, longest_side = REQUEST.unpack(request)
        content = exactly(sys.stdin.buffer, size)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        try:
            picture = still_in_this_process(content, longest_side or None)
            answer = REPLY.pack(True, *picture.size, 3 * picture.width * picture.height) + picture.tobytes()
        except MemoryError:
            return
        except Exception as error:  # decoders of hostile files raise anything
            reason = (" ".join(str(error).split())[:100] or type(error).__name__).encode()
            answer = REPLY.pack(False, 0, 0, len(reason)) + reason
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]))
