"""Stand-ins for S3, Google Cloud Storage and the HuggingFace hub on this machine; their clients are pointed there."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import fsspec
import pytest

COMMIT = "0" * 40


class Clouds:
    """What was put there, each under `bucket/path`. A stand-in starts when it is first needed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._set = monkeypatch
        self._servers: list[Any] = []
        self._buckets: set[str] = set()
        self._hub: dict[str, dict[str, bytes]] = defaultdict(dict)

    def s3(self) -> Any:
        import boto3
        from moto.server import ThreadedMotoServer

        if not os.environ.get("AWS_ENDPOINT_URL"):
            logging.getLogger("werkzeug").setLevel(logging.ERROR)
            server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
            server.start()
            self._servers.append(server)
            for name, value in {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
                "AWS_ACCESS_KEY_ID": "made",
                "AWS_SECRET_ACCESS_KEY": "up",
                "AWS_DEFAULT_REGION": "us-east-1",
            }.items():
                self._set.setenv(name, value)
        return boto3.client("s3")

    def put_s3(self, path: str, content: bytes) -> None:
        client, (bucket, _, key) = self.s3(), path.partition("/")
        if bucket not in self._buckets:
            client.create_bucket(Bucket=bucket)
            self._buckets.add(bucket)
        client.put_object(Bucket=bucket, Key=key, Body=content)

    def get_s3(self, path: str) -> bytes:
        bucket, _, key = path.partition("/")
        content: bytes = self.s3().get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    def put_gcs(self, path: str, content: bytes) -> None:
        bucket, _, key = path.partition("/")
        if not os.environ.get("STORAGE_EMULATOR_HOST"):
            self._start_gcs(bucket)
        from twothirds.sources.files.buckets import GoogleStorage

        with GoogleStorage().open(f"{bucket}/{key}", "wb") as file:
            file.write(content)

    def put(self, url: str, content: bytes) -> None:
        kind, _, path = url.partition("://")
        (self.put_s3 if kind == "s3" else self.put_gcs)(path, content)

    def get(self, url: str) -> bytes:
        from twothirds.sources.files.buckets import GoogleStorage

        kind, _, path = url.partition("://")
        if kind == "s3":
            return self.get_s3(path)
        with GoogleStorage().open(path, "rb") as file:
            content: bytes = file.read()
            return content

    def _start_gcs(self, bucket: str) -> None:
        """In a process of its own: Arrow may hold Python's lock while it waits for the reply."""
        port = _free_port()
        where = ["--host", "127.0.0.1", "--port", str(port), "--in-memory", "--default-bucket", bucket]
        command = [sys.executable, "-m", "gcp_storage_emulator", "start", *where]
        self._servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(600):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        self._set.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")

    def put_hub(self, repository: str, path: str, content: bytes) -> None:
        if not self._hub:
            import huggingface_hub

            server = ThreadingHTTPServer(("127.0.0.1", 0), _hub_handler(self._hub))
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self._servers.append(server)
            here = f"http://127.0.0.1:{server.server_address[1]}"
            template = f"{here}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
            constants = {"ENDPOINT": here, "HUGGINGFACE_CO_URL_TEMPLATE": template, "HF_HUB_OFFLINE": False}
            for name, value in constants.items():
                self._set.setattr(f"huggingface_hub.constants.{name}", value)
            huggingface_hub.HfFileSystem.clear_instance_cache()
        self._hub[repository][path] = content

    def close(self) -> None:
        for server in self._servers:
            if isinstance(server, subprocess.Popen):
                server.kill()
                server.wait()
            elif isinstance(server, ThreadingHTTPServer):
                server.shutdown()
                server.server_close()
            else:
                server.stop()


@contextmanager
def clouds() -> Iterator[Clouds]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "STORAGE_EMULATOR_HOST", "HF_TOKEN"):
            patch.delenv(name, raising=False)
        made = Clouds(patch)
        try:
            yield made
        finally:
            made.close()
            for kind in ("s3", "gs"):
                with suppress(ImportError, ValueError):
                    fsspec.get_filesystem_class(kind).clear_instance_cache()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _hub_handler(repositories: dict[str, dict[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """As much of the hub's API as reading takes."""

        def do_GET(self) -> None:
            path, everything = unquote(urlsplit(self.path).path), "recursive=true" in self.path.lower()
            for name, files in repositories.items():
                if path.startswith(f"/api/datasets/{name}/tree/"):
                    folder = path.removeprefix(f"/api/datasets/{name}/tree/").partition("/")[2]
                    return self._send(_entries(files, None if everything else folder))
                if path.startswith(f"/api/datasets/{name}"):
                    return self._send({"id": name, "sha": COMMIT, "siblings": [], "private": False, "disabled": False})
                if path.startswith(f"/datasets/{name}/resolve/"):
                    return self._file(files, path.removeprefix(f"/datasets/{name}/resolve/").partition("/")[2])
            return self._send({"error": "Repository not found"}, 404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = "/".join(urlsplit(self.path).path.split("/")[3:5])
            paths = [path.strip("/") for path in asked["paths"]]
            found = [one for one in _entries(repositories[name], None) if one["path"] in paths]
            self._send(found)

        def _file(self, files: dict[str, bytes], path: str) -> None:
            if path not in files:
                return self._send({"error": "Entry not found"}, 404)
            content, status = files[path], 200
            if wanted := self.headers.get("Range"):
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                content, status = content[int(first) : int(last) + 1 if last else None], 206
            return self._send(content, status)

        def _send(self, content: Any, status: int = 200) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", hashlib.sha1(body, usedforsecurity=False).hexdigest())
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _entries(files: dict[str, bytes], folder: str | None) -> list[dict[str, Any]]:
    """Files and folders of a repository: right in a folder, or all."""
    found: dict[str, dict[str, Any]] = {}
    for path, content in files.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            at = "/".join(parts[:depth])
            found[at] = {"type": "directory", "path": at, "oid": COMMIT, "size": 0}
        found[path] = {"type": "file", "path": path, "oid": COMMIT, "size": len(content)}
    inside = "" if not folder else folder + "/"
    return [
        one for at, one in found.items() if folder is None or (at.startswith(inside) and "/" not in at[len(inside) :])
    ]
