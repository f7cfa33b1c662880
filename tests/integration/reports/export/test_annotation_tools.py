"""Label Studio and FiftyOne: what they import, checked here by its form and in slow tests by the real packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.run_folders import make_run, random_matrix
from twothirds.reports.export.formats import export_run
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset


def said_in_environment(folder: Path, package: str, script: str, *arguments: str) -> str:
    """The last line that a script prints in a new environment with the package, made in the folder."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = str(folder / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "FIFTYONE_DO_NOT_TRACK": "1"}
    command = [python, "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


ROOT = Path(__file__).parents[4]
FACES = str(ROOT / "datasets" / "faces")
NAMES = ["glasses", 'a "hat" & <cap>', "id"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("tools")
    ids = [example.id for example in load_dataset(FACES).examples]
    run = make_run(folder / "run", FACES, ids, NAMES, random_matrix(3, len(ids), unknown=0.1))
    export_run(run, ["label-studio,fiftyone"], load_dataset(FACES))
    return run


def having(run: Run, name: str) -> set[str]:
    row = run.labels.loc[name].fillna(0)
    return {str(feature) for feature in row.index if row[feature] == 1}


def test_label_studio_gets_tasks_with_predictions_and_a_project(run: Run) -> None:
    folder = run.folder / "export" / "label-studio"
    view = ElementTree.fromstring((folder / "config.xml").read_text(encoding="utf-8"))
    assert [choice.get("value") for choice in view.iter("Choice")] == [*run.labels.columns]
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    assert [task["data"]["id"] for task in tasks] == run.labels.index.tolist()
    for task in tasks:
        picture = task["data"]["image"].removeprefix("/data/local-files/?d=label-studio/")
        assert (folder / picture).is_file()
        said = {choice for one in task["predictions"][0]["result"] for choice in one["value"]["choices"]}
        assert said == having(run, task["data"]["id"])


def test_fiftyone_gets_pictures_and_their_features(run: Run) -> None:
    folder = run.folder / "export" / "fiftyone"
    written = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    assert {path.stem for path in (folder / "data").iterdir()} == set(written["labels"])
    for (_, labels), name in zip(sorted(written["labels"].items()), run.labels.index, strict=True):
        row = run.labels.loc[name]
        assert {label for label in labels if not label.endswith(" (unknown)")} == having(run, str(name))
        assert sum(label.endswith(" (unknown)") for label in labels) == row.isna().sum()
        assert set(labels) <= set(written["classes"])


LABEL_STUDIO = """
import json, sys
from pathlib import Path
from label_studio_sdk.label_interface import LabelInterface

folder = Path(sys.argv[1])
project = LabelInterface((folder / "config.xml").read_text(encoding="utf-8"))
project.validate()
tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
predictions = [prediction for task in tasks for prediction in task["predictions"]]
valid = [project.validate_task({"data": task["data"]}) for task in tasks]
print(json.dumps(valid + [project.validate_prediction(prediction) for prediction in predictions]))
"""
# The importer is FiftyOne's own; a whole fiftyone.Dataset needs MongoDB, which cannot be had everywhere.
FIFTYONE = """
import json, sys
from fiftyone.utils.data.importers import FiftyOneImageClassificationDatasetImporter

importer = FiftyOneImageClassificationDatasetImporter(dataset_dir=sys.argv[1])
read = {}
with importer:
    for path, _, label in importer:
        read[path] = [] if label is None else [one.label for one in label.classifications]
print(json.dumps(read))
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)  # installs the package
def test_label_studio_accepts_project_and_tasks(run: Run, tmp_path: Path) -> None:
    folder = str(run.folder / "export" / "label-studio")
    valid = json.loads(said_in_environment(tmp_path, "label-studio-sdk==2.1.2", LABEL_STUDIO, folder))
    assert valid == [True] * 2 * len(run.labels)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # installs the package
def test_fiftyone_reads_pictures_and_labels(run: Run, tmp_path: Path) -> None:
    read = json.loads(
        said_in_environment(tmp_path, "fiftyone==1.22.1", FIFTYONE, str(run.folder / "export" / "fiftyone"))
    )
    by_file = {Path(path).stem: labels for path, labels in read.items()}
    assert all(Path(path).is_file() for path in read)
    for number, name in enumerate(run.labels.index, start=1):
        said = {label for label in by_file[f"{number:06d}"] if not label.endswith(" (unknown)")}
        assert said == having(run, str(name))
