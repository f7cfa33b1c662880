"""docker, podman and buildah, whichever is here: they build deploy/Dockerfile and run what was built without a network.

TWOTHIRDS_TEST_BASE names the base image, where that of the Dockerfile cannot be pulled; TWOTHIRDS_TEST_BUILD has more
options of the build: volumes, secrets, build arguments."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TAG = "twothirds:test"
# As the services of deploy/compose.yaml, and cut off from everything
CONFINED = ("--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")
Done = subprocess.CompletedProcess[str]


class NoImage(Exception):
    """No image can be built here, and why."""


def call(*words: str, seconds: float = 600) -> Done:
    # Tests trust one certificate only (tests/conftest.py), registries have others.
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    return subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=seconds
    )


@dataclass(frozen=True)
class Builder:
    tool: str

    def base(self, image: str) -> None:
        """Pulls the image if it is not here, and runs it once. Raises NoImage where either is impossible."""
        if call(self.tool, "inspect", "--type=image", image).returncode:
            pulled = call(self.tool, "pull", image)
            if pulled.returncode:
                raise NoImage(
                    f"{self.tool} cannot pull {image}, name a local image by TWOTHIRDS_TEST_BASE: {end(pulled)}"
                )
        tried = self.run(image, ["true"])
        if tried.returncode:
            raise NoImage(f"{self.tool} cannot run {image}: {end(tried)}")

    def build(self, base: str, options: Sequence[str]) -> str:
        pull = [] if self.tool == "docker" else ["--pull-never", "--layers"]
        isolation = ["--isolation=chroot"] if self.tool == "buildah" else []
        file = ["--file", str(DOCKERFILE), "--tag", TAG, "--build-arg", f"BASE={base}"]
        built = call(self.tool, "build", *pull, *isolation, *file, *options, ".", seconds=3000)
        assert built.returncode == 0, built.stderr[-3000:]
        return TAG

    def config(self, image: str) -> dict[str, Any]:
        said = json.loads(call(self.tool, "inspect", "--type=image", image).stdout)
        found: dict[str, Any] = said["OCIv1"]["config"] if self.tool == "buildah" else said[0]["Config"]
        return found

    def run(self, image: str, command: Sequence[str], seconds: float = 600) -> Done:
        if self.tool != "buildah":
            return call(self.tool, "run", "--rm", *CONFINED, image, *command, seconds=seconds)
        made = call("buildah", "from", "--pull-never", image)
        container = made.stdout.strip()
        if made.returncode:
            return made
        try:
            inside = ("buildah", "run", "--isolation=chroot", container, "--", *command)
            return call("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *inside, seconds=seconds)
        finally:
            call("buildah", "rm", container)


def end(done: Done) -> str:
    return (done.stderr.strip().splitlines() or ["it says nothing"])[-1]


def base_image() -> str:
    (shipped,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    return os.environ.get("TWOTHIRDS_TEST_BASE") or shipped


def build_options() -> list[str]:
    return shlex.split(os.environ.get("TWOTHIRDS_TEST_BUILD", ""))


def find_builder() -> Builder:
    """The first that has the base image and can run it. Raises NoImage with what each of them said."""
    reasons = []
    for tool in ("docker", "podman", "buildah"):
        if shutil.which(tool) is None:
            continue
        asked = call(tool, "info", seconds=60)
        if asked.returncode:
            reasons.append(f"{tool} does not answer: {end(asked)}")
            continue
        try:
            Builder(tool).base(base_image())
        except NoImage as reason:
            reasons.append(str(reason))
            continue
        return Builder(tool)
    raise NoImage("; ".join(reasons) or "none of docker, podman and buildah is installed")
