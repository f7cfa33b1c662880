"""The image of deploy/Dockerfile, built and run without a network, with the commands of deploy/compose.yaml."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.support.builders import ROOT, Builder, Done, NoImage, base_image, build_options, find_builder

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.xdist_group("image")]


@dataclass(frozen=True)
class Image:
    builder: Builder
    name: str

    @property
    def config(self) -> dict[str, Any]:
        return self.builder.config(self.name)

    def run(self, *command: str) -> Done:
        return self.builder.run(self.name, command)

    def script(self, *lines: str) -> str:
        """What the lines print. All must succeed."""
        done = self.run("sh", "-euc", "\n".join(lines))
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def image() -> Image:
    try:
        builder = find_builder()
    except NoImage as reason:
        pytest.skip(str(reason))
    return Image(builder, builder.build(base_image(), build_options()))


def started(service: str) -> str:
    """The service in the background, for as long as the script runs."""
    return f"{shlex.join(SERVICES[service]['command'])} >/tmp/{service}.log 2>&1 &"


def until(command: str, log: str) -> str:
    """Waits until the command succeeds; else shows the log."""
    return (
        f"n=0; until {command}; do n=$((n+1)); [ $n -lt 150 ] || {{ cat /tmp/{log}.log >&2; exit 1; }}; sleep 1; done"
    )


def test_it_says_what_it_can_do(image: Image) -> None:
    assert not image.config.get("Entrypoint"), "Kubernetes and compose give whole commands"
    said = image.run(*image.config["Cmd"])
    assert said.returncode == 0
    assert "twothirds" in said.stdout


def test_its_user_may_write_to_data_only(image: Image) -> None:
    assert image.config["User"] == "10001:10001"
    assert "/data" in image.config["Volumes"]
    assert image.script("id -u", "touch /data/here", "! touch here", "! touch .venv/here").strip() == "10001"


def test_it_holds_what_dockerignore_names_and_nothing_of_the_build(image: Image) -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert set(image.script("ls -A").split()) == allowed | {".venv"}
    assert "PIP_" not in json.dumps(image.config)
    assert (
        image.script("find . -name '*.pem' -not -path '*/site-packages/*'", "ls -A /run/secrets 2>/dev/null || true")
        == ""
    )
    assert "nvidia" not in image.script("ls .venv/lib/python*/site-packages")


def test_what_it_runs_is_compiled(image: Image) -> None:
    look = (
        "import json, os, twothirds.flows.discover.flow as ours\n"
        "print(*map(os.path.exists, (ours.__cached__, json.__cached__)))"
    )
    assert image.script(shlex.join(["python", "-c", look])).split() == ["True", "True"]


def test_it_discovers_features_without_a_network(image: Image) -> None:
    said = image.script(
        "twothirds discover datasets/faces --oracle contrastive --queries 2 --out /data/run", "ls /data/run"
    )
    assert "features.csv" in said
    assert "report.html" in said


def test_server_deployments_and_worker_do_a_run(image: Image) -> None:
    health = shlex.join(SERVICES["prefect"]["healthcheck"]["test"][1:])
    page = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:4200/').read().decode())"
    said = image.script(
        "export PREFECT_SERVER_API_AUTH_STRING=a:b PREFECT_API_AUTH_STRING=a:b PREFECT_API_URL=http://127.0.0.1:4200/api",
        started("prefect"),
        until(f"{health} 2>/dev/null", "prefect"),
        shlex.join(["python", "-c", page]),
        shlex.join(SERVICES["deployments"]["command"]),
        "prefect deployment run discover/discover --param "
        + shlex.quote(
            'settings={"dataset": "datasets/faces", "oracle": "simulated", "queries": 2, "out": "/data/run"}'
        ),
        f"{shlex.join(SERVICES['worker']['command'])} --run-once >/tmp/worker.log 2>&1",
        until("test -e /data/run/run.json", "worker"),
    )
    assert "<title>Prefect" in said


def test_the_studio_answers(image: Image) -> None:
    ask = (
        "import http.client as c; a = c.HTTPConnection('127.0.0.1', 8765); a.request('GET', '/'); "
        "s = a.getresponse().status; assert s < 500, s; print('answered', s)"
    )
    said = image.script(
        # In compose.yaml the folders are mounted; here they lie where the user may write.
        "mkdir -p /data/runs /data/enriched",
        started("studio").replace(" runs enriched ", " /data/runs /data/enriched "),
        until(shlex.join(["python", "-c", ask]) + " 2>/dev/null", "studio"),
        "grep -o 'http://127.0.0.1:8765/s/' /tmp/studio.log",
    )
    assert "answered" in said
