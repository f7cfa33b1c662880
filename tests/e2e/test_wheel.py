"""What `pip install .` brings: one package and one command, in a project whose own folders have the names of its parts.

The packages of the clone stand in for a registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.prefect_home import prefect_home

ROOT = Path(__file__).parents[2]
PARTS = [path.name for path in (ROOT / "twothirds").iterdir() if path.is_symlink()]
NOT_SHIPPED = {"build.py"}  # makes a data set from its sources


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From a copy, so that what a build might leave behind is seen."""
    copy, folder = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files", "-z", *_built_from()], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    before = sorted(copy.rglob("*"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", *options, str(copy)], check=True)
    assert sorted(copy.rglob("*")) == before
    [made] = folder.iterdir()
    return made


def _built_from() -> list[str]:
    return [*PARTS, "twothirds", "pyproject.toml", "setup.py", "README.md", "LICENSE"]


def test_the_wheel_holds_one_package_with_every_file_of_its_parts(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        [commands] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert archive.read(commands).decode().split() == ["[console_scripts]", "twothirds", "=", _command()]
    assert {name.partition("/")[0] for name in names} == {"twothirds"}
    listed = subprocess.run(["git", "ls-files", *PARTS], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {f"twothirds/{name}" for name in listed.stdout.splitlines() if Path(name).name not in NOT_SHIPPED}
    assert wanted - names == set()


def _command() -> str:
    return "twothirds.flows.cli.app:run"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that holds the wheel, and the clone's packages behind it."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *options], check=True)
    [packages] = home.glob("lib/python*/site-packages")
    (packages / "clone.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return home / "bin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of somebody else, where every part of twothirds has a namesake."""
    for name in PARTS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('{name} of the project')\n", encoding="utf-8")
    return tmp_path


def run_in(project: Path, home: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(prefect_home(home / "prefect")), "XDG_STATE_HOME": str(home / "state")}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_discovers_features_of_a_shipped_data_set(
    installed: Path, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    words = ["discover", "zoo", "--oracle", "simulated", "--queries", "3", "--out", "zoo"]
    printed = run_in(project, home, str(installed / "twothirds"), *words)
    assert "interesting" in printed
    assert {"run.json", "features.csv", "labels.parquet", "report.html"} <= {
        path.name for path in (project / "zoo").iterdir()
    }


def test_python_discovers_beside_folders_of_the_same_names(
    installed: Path, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project / "train.py").write_text(
        "import twothirds\n"
        "from twothirds.flows.api import discover, export\n"
        "run = discover('faces', oracle='simulated', queries=2, out='run')\n"
        "print(twothirds.__file__)\n"
        "print(*export(run, ['wide-csv']))\n"
        "print(len(run.labels))\n",
        encoding="utf-8",
    )
    printed = run_in(project, tmp_path_factory.mktemp("home"), str(installed / "python"), "train.py")
    place, table, labelled = printed.splitlines()
    assert place.startswith(str(installed.parent))
    assert (project / table).exists()
    assert int(labelled) > 0
