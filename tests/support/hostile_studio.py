"""Folders for the studio in which every name and text is hostile: runs, a table, a comparison, what was started."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.support.growing_worlds import World, night
from tests.support.run_folders import HOSTILE, make_run, random_matrix
from twothirds.studio.catalog import key_of

FOLDER = "<img src=x onerror=alert(1)>'\"&{{7*7}}"  # a name that a file system takes


@dataclass(frozen=True)
class HostileFolders:
    root: Path
    store: str
    run: str
    other: str
    table: str
    comparison: str
    started: str

    def pages(self) -> list[str]:
        """Every address that shows something of them."""
        return [
            "/runs",
            "/runs?q=%3Cscript%3Ealert(1)%3C/script%3E",
            f"/runs/{self.run}",
            f"/runs/{self.run}/correct?which=all",
            f"/runs/{self.run}/browse",
            f"/side-by-side?run={self.run}&run={self.other}",
            "/costs",
            f"/tables/{self.table}",
            f"/runs/{self.run}/discovery",
            f"/started/{self.started}",
        ]

    def pages_of_owner(self) -> list[str]:
        owned = ["/people", "/start/discover", "/start/compare", f"/start/enrich?table={self.table}"]
        return [*owned, f"/runs/{self.run}/again"]


def hostile_folders(folder: Path) -> HostileFolders:
    root = folder / "runs"
    ids = [f"e{number}" for number in range(len(HOSTILE))]
    rows = "".join(f'{name},"{text.replace(chr(34), chr(34) * 2)}"\n' for name, text in zip(ids, HOSTILE, strict=True))
    data = folder / f"{FOLDER}.csv"
    data.write_text("id,text\n" + rows, encoding="utf-8")
    made = []
    for number, names in enumerate((HOSTILE[:6], HOSTILE[2:8])):
        matrix = random_matrix(len(names), len(ids), seed=number)
        run = make_run(root / f"{FOLDER}{number}", str(data), ids, list(names), matrix, definitions=HOSTILE[4:])
        _spoil(run.folder / "run.json", number)
        made.append(run.folder)
    _live(made[0])
    world = World(root / "world", 12, HOSTILE[:2])
    (world.folder / FOLDER).mkdir()
    features = "\n".join(["name,definition", *(f'"{_quoted(one)}","{_quoted(HOSTILE[0])}"' for one in HOSTILE[:2])])
    (world.folder / "features.csv").write_text(features, encoding="utf-8")
    night(world, run_id=HOSTILE[0], out=str(world.folder / FOLDER), features=str(world.folder / "features.csv"))
    summary = json.loads((world.folder / FOLDER / "enrich.json").read_text())
    summary |= {"violations": list(HOSTILE), "warnings": list(HOSTILE), "message": HOSTILE[0]}
    summary["oracle"] |= {"kind": HOSTILE[0], "model": HOSTILE[1]}
    (world.folder / FOLDER / "enrich.json").write_text(json.dumps(summary))
    comparison, started = root / f"{FOLDER}compared", root / f"{FOLDER}started"
    for one in (comparison, started):
        one.mkdir()
    listed = {"dataset": {"name": HOSTILE[0]}, "sample": 3, "features": [], "partial": True, "finished_at": HOSTILE[1]}
    oracles = [{"name": name, "paid_usd": 0.5} for name in HOSTILE]
    (comparison / "comparison.json").write_text(json.dumps(listed | {"oracles": oracles}))
    (comparison / "compare.html").write_text(HOSTILE[0])
    (started / "start.json").write_text("{}")
    (started / "start.log").write_text("\n".join(HOSTILE))
    keys = (key_of(one.resolve()) for one in (*made, world.folder / FOLDER, comparison, started))
    return HostileFolders(root, str(world.folder / "store.sqlite"), *keys)


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _spoil(path: Path, number: int) -> None:
    summary = json.loads(path.read_text())
    summary["oracle"] |= {"kind": HOSTILE[number], "model": HOSTILE[1 - number]}
    summary["dataset"] |= {"name": HOSTILE[number]}
    summary["settings"] |= {"about": HOSTILE[number], HOSTILE[0]: HOSTILE[1 + number]}
    summary |= {
        "stopped_because": HOSTILE[number],
        "total_usd": 1.5,
        "unknown_usd": 0.25,
        "run_id": f"hostile {number}",
    }
    summary["finished_at"] = "2026-05-01T10:00:00+00:00"
    path.write_text(json.dumps(summary))


def _live(folder: Path) -> None:
    begun = {"kind": "RunStarted", "run_id": "hostile 0", "name": HOSTILE[0], "oracle": HOSTILE[1], "queries": 3}
    begun |= {"compared": 3, "budget_usd": None, "at": HOSTILE[0], "settings": {"dataset": HOSTILE[0]}}
    (folder / "live.jsonl").write_text(json.dumps(begun) + "\n")
