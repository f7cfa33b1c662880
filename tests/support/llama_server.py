"""Serves the language model that tests/install_qwen.sh has fetched, with an OpenAI-compatible API on loopback:
python -m tests.support.llama_server PORT [--folder FOLDER] [--threads N]. Ends with its standard input."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER = Path(os.environ.get("TWOTHIRDS_QWEN", CACHE / "twothirds" / "qwen"))
MODEL = "qwen2.5-coder-1.5b"
CONTEXT = 16_384  # tokens, for all slots together
SLOTS = 2
START_SECONDS = 120


def is_here(folder: Path = FOLDER) -> bool:
    return (folder / "model.gguf").is_file() and (folder / "xllamacpp").is_dir()


@contextmanager
def llama_server(folder: Path = FOLDER, threads: int = 1) -> Iterator[str]:
    """The base URL of a server that ends with the block. It waits its turn behind other programs."""
    python = [sys.executable, "-m", "tests.support.llama_server"]
    with subprocess.Popen(
        ["nice", "-n", "5", *python, "0", "--folder", str(folder), "--threads", str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the server of {folder} has not started")
            _wait_for(url)
            yield f"{url}/v1"
        finally:
            process.kill()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"{url}/health").is_success:
                return
        except httpx.TransportError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url} is not ready after {START_SECONDS} s")
        time.sleep(0.2)


def serve(folder: Path, port: int, threads: int) -> None:
    sys.path.insert(0, str(folder))
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "model.gguf")
    params.model_alias = {MODEL}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = CONTEXT, SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    serve(options.folder, options.port, options.threads)
