"""How many modules and functions one question passes from the command line to its committed answer.

    python -m tests.support.question_path

runs a discovery with the fake model server and counts what of the program is called, in all threads, until the answer
to the first comparison is written to the store."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, texts_table

ROOT = Path(__file__).parents[2]
PACKAGES = ("flows", "tasks", "models", "studio", "reports", "store", "discovery", "sources")
PROGRAM = f"{ROOT / 'twothirds'}{os.sep}"
OPTIMIZED = 1  # the flag of functions; bodies of classes and modules lack it


class CallPath:
    """What has been called so far."""

    def __init__(self) -> None:
        self.called: set[tuple[str, str]] = set()
        self.elicits = self.ended = False

    def see(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        file = code.co_filename
        if self.ended or not file.startswith(PROGRAM) or not code.co_flags & OPTIMIZED or code.co_name[0] == "<":
            return
        if event == "call":
            self.called.add((file, code.co_qualname))
            self.elicits |= file.endswith("tasks/ask.py") and code.co_name == "elicit"
        elif event == "return" and self.elicits and file.endswith("store/requests.py") and code.co_name == "record":
            self.ended = True


def main() -> None:
    path = CallPath()
    with tempfile.TemporaryDirectory() as folder, FakeOpenAI(FakeModel(WORDS)) as server:
        for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "PREFECT_HOME"):
            os.environ[variable] = folder
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,2"
        dataset = texts_table(Path(folder), 6)
        words = ["--oracle", oracle, "--queries", "1", "--budget", "1", "--out", str(Path(folder) / "run")]
        sys.argv = ["twothirds", "discover", str(dataset), *words]
        threading.setprofile(path.see)
        sys.setprofile(path.see)
        try:
            runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    print(f"modules: {len({file for file, _ in path.called})}, functions: {len(path.called)}", file=sys.stderr)


if __name__ == "__main__":
    main()
