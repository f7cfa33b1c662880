"""What deploy/ holds: an image that runs without rights, services that tell nobody about us, a work pool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import prefect
import pytest
import yaml
from prefect.settings import Settings
from prefect.settings.legacy import _get_settings_fields

from twothirds.flows.cli.app import main

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
WORKER_METADATA = Path(prefect.__file__).parent / "server/api/collections_data/views/aggregate-worker-metadata.json"
SECRET = re.compile(r"(password|token|secret|api_key|auth)\w*\s*[=:]\s*[\"']?[\w-]{3,}", re.IGNORECASE)
OF_OTHERS = {
    *("PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX", "DO_NOT_TRACK", "OPENAI_API_KEY"),
    *("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"),
}
KEYS_OF_A_SERVICE = {
    *("image", "build", "command", "depends_on", "environment", "ports", "volumes", "healthcheck"),
    *("restart", "init", "read_only", "tmpfs", "cap_drop", "security_opt"),
}


def instructions(name: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    return [line.partition(" ")[2] for line in joined.splitlines() if line.startswith(f"{name} ")]


def test_every_path_that_is_copied_is_there() -> None:
    copied = [words.split()[:-1] for words in instructions("COPY") if not words.startswith("--from")]
    assert copied
    for source in (source for sources in copied for source in sources):
        assert (ROOT / source).exists(), source


def test_the_image_runs_without_rights_and_sends_no_statistics() -> None:
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    user = re.findall(r"^USER (\d+):\d+$", last, re.MULTILINE)
    assert user
    assert int(user[-1]) > 0
    assert last.index("USER") > last.index("COPY . ."), "what is copied belongs to root, and cannot be changed"
    environment = " ".join(instructions("ENV"))
    assert "DO_NOT_TRACK=1" in environment
    assert "PREFECT_SERVER_ANALYTICS_ENABLED=false" in environment


def test_the_pull_step_finds_the_clone_in_the_image() -> None:
    (step,) = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["pull"]
    (given,) = step.values()
    name = re.findall(r"\$(\w+)", given["directory"])[0]
    assert f"{name}={instructions('WORKDIR')[-1]}" in " ".join(instructions("ENV"))


def test_the_image_has_no_build_of_torch_for_graphics_cards() -> None:
    (install,) = (words for words in instructions("RUN") if "supply/install.sh" in words)
    assert "nvidia-" in install
    assert "exit 1" in install


def test_no_file_holds_a_secret_or_the_address_of_a_registry() -> None:
    for path in (path for path in DEPLOY.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"https?://([\w.-]+)", text)) <= {"127.0.0.1", "localhost", "prefect", "postgres"}, path
        lines = [line for line in text.splitlines() if "${" not in line and "secretRef" not in line]
        assert [line for line in lines if SECRET.search(line)] == [], path
        images = re.findall(r"image: (\S+)", text)
        assert all("." not in image.partition("/")[0] or "/" not in image for image in images), path


def is_copied(path: str) -> bool:
    """Whether .dockerignore lets the path into an image: as Docker reads it, the last pattern that matches decides."""
    copied = True
    folders = [str(folder) for folder in (PurePosixPath(path), *PurePosixPath(path).parents)][:-1]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if pattern.startswith("**/"):
            matches = any(fnmatch(name, pattern[3:]) for name in PurePosixPath(path).parts)
        else:
            matches = any(fnmatch(folder, pattern) for folder in folders if "/" not in folder)
        if matches and not line.startswith("#"):
            copied = line.startswith("!")
    return copied


def test_what_must_not_get_into_an_image_is_left_out() -> None:
    paths = """.git/config .venv/bin/python .env deploy/.env store.sqlite flows/a.sqlite-wal runs/a/run.json
        enriched/faces tests/conftest.py state/server.auth data/photo.png key.pem our-automations.yaml
        flows/__pycache__/a.pyc models/.env.local"""
    assert [path for path in paths.split() if is_copied(path)] == []


def test_what_the_program_needs_gets_into_the_image() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"}
    assert {"flows", "store", "models"} <= packages
    for name in (*packages, "datasets", "prefect.yaml", "automations.yaml", "LICENSE", "flows/__init__.py"):
        assert is_copied(name), name
    for name in re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE):
        assert (ROOT / name).exists(), name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing() -> None:
    subprocess.run(["hadolint", str(DEPLOY / "Dockerfile")], check=True)


def test_services_refer_to_what_is_there() -> None:
    assert {"postgres", "prefect", "worker", "studio"} <= set(SERVICES)
    for name, service in SERVICES.items():
        assert set(service) <= KEYS_OF_A_SERVICE, name
        assert set(service.get("healthcheck", {})) <= {"test", "interval", "timeout", "retries", "start_period"}
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES
            assert how["condition"] in {"service_started", "service_healthy", "service_completed_successfully"}
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("../"):
                assert source in yaml.safe_load(COMPOSE)["volumes"]
    assert set(SERVICES["prefect"]["build"]["args"]) <= {words.partition("=")[0] for words in instructions("ARG")}


def test_servers_send_no_statistics_and_listen_to_this_machine_only() -> None:
    for service in SERVICES.values():
        environment, command = service.get("environment", {}), service.get("command", [])
        if service["image"] == "twothirds":
            assert environment["DO_NOT_TRACK"] == "1"
        if "server" in command:
            assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
            assert environment["PREFECT_SERVER_API_AUTH_STRING"].startswith("${PREFECT_AUTH:?")
            assert environment["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def variables() -> list[str]:
    """The environment variables that the image, the services and the worker of Kubernetes set."""
    found = re.findall(r"(\w+)=", " ".join(instructions("ENV")))
    found += [
        name for service in SERVICES.values() if service["image"] == "twothirds" for name in service["environment"]
    ]
    worker = (DEPLOY / "kubernetes" / "worker.yaml").read_text(encoding="utf-8")
    return sorted({*found, *re.findall(r"{name: (\w+), value:", worker)})


def test_variables_that_are_set_are_read() -> None:
    readers = [*ROOT.glob("flows/**/*.py"), ROOT / "prefect.yaml"]
    ours = "".join(path.read_text(encoding="utf-8") for path in readers)
    prefects = _get_settings_fields(Settings)
    for name in variables():
        read = name in ours if name.startswith("TWOTHIRDS_") else name in OF_OTHERS or name in prefects
        assert read, name


def test_the_commands_of_the_services_are_commands_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    ours = [one["command"] for one in SERVICES.values() if one.get("command", [])[:3] == ["python", "-m", "twothirds"]]
    assert ours
    for _, _, _, command, *words in ours:
        assert main([command, *(word for word in words[:1] if not word.startswith("-")), "--help"]) == 0
        said = capsys.readouterr().out
        assert all(word in said for word in words if word.startswith("--"))


def test_the_work_pool_is_prefects_own_with_our_image_and_fewer_rights() -> None:
    ours = json.loads((DEPLOY / "kubernetes" / "work-pool.json").read_text(encoding="utf-8"))
    shipped = json.loads(WORKER_METADATA.read_text(encoding="utf-8"))
    theirs = shipped["prefect-kubernetes"]["kubernetes"]["default_base_job_configuration"]
    assert set(ours["variables"]["properties"]) == set(theirs["variables"]["properties"])
    assert contains(ours["job_configuration"], theirs["job_configuration"])
    pod = ours["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    volumes = {one["name"] for one in pod["volumes"]}
    assert {one["name"] for one in container["volumeMounts"]} == volumes
    assert ours["variables"]["properties"]["image"]["default"] == "twothirds"


def contains(ours: Any, theirs: Any) -> bool:
    """Whether all of theirs is in ours, at the same place."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(name in ours and contains(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list):
        return len(ours) >= len(theirs) and all(map(contains, ours, theirs))
    return bool(ours == theirs)


def test_the_worker_of_kubernetes_has_what_it_refers_to() -> None:
    parts = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "worker.yaml").read_text(encoding="utf-8")))
    by_kind = {one["kind"]: one for one in parts}
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["serviceAccountName"] == by_kind["ServiceAccount"]["metadata"]["name"]
    (worker,) = pod["containers"]
    assert prefect.__version__ in worker["image"]
    pool = json.loads((DEPLOY / "kubernetes" / "work-pool.json").read_text(encoding="utf-8"))
    wanted = pool["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]["volumes"]
    claims = {one["persistentVolumeClaim"]["claimName"] for one in wanted if "persistentVolumeClaim" in one}
    assert claims == {one["metadata"]["name"] for one in parts if one["kind"] == "PersistentVolumeClaim"}
