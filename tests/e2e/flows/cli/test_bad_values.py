"""Every value in every place where a path or an address is asked for: what cannot be used is one line with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.flows.cli.app import main

VALUES = [
    *("", " ", "~nobody-of-that-name/x", "a" * 300, "a" * 5000, "/dev/null", "folder", "junk", "empty", "list.json"),
    *("deep.json", "\udcff", "..", "sqlite://", "postgresql://", "http://[", "s3://", "zip://", "::", "x::y"),
    *("file://", "nan", "{}", "[", "-"),
]
FEW = ["", "~nobody-of-that-name/x", "a" * 300, "junk", "deep.json", "\udcff", "http://["]
STORED = ["--store", "s.sqlite"]
CROWD = ["t.csv", "--oracle", "simulated"]
COMMANDS = [
    *(["estimate", "@", "--oracle", "simulated", *STORED], ["estimate", *CROWD, "--store", "@"]),
    *(["estimate", *CROWD, "--config", "@", *STORED], ["estimate", *CROWD, "--exclude", "@", *STORED]),
    *(["estimate", *CROWD, "--budget", "@", *STORED], ["estimate", "t.csv", "--oracle", "@", *STORED]),
    *(["estimate", "t.csv", "--oracle", f"{kind}@", *STORED] for kind in ("recorded:", "openai:m?prices=", "vlm:~")),
    *(["costs", "--store", "@"], ["costs", "@", *STORED], ["store", "check", "--store", "@"]),
    *(["store", "backup", "@", *STORED], ["store", "restore", "@", "--store", "new.sqlite"]),
    *([name, "@"] for name in ("report", "export", "tree")),
    *(["features", "@", "list"], ["review", "export", "@", *STORED], ["review", "status", "--store", "@"]),
    *(["review", "checks", "t.csv", "@", *STORED], ["review", "invite", "Ann", "--days", "@", *STORED], ["@"]),
]


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id,text\n" + "".join(f"{number},t{number}\n" for number in range(5)))
    Path("truth.csv").write_text("id,a\n" + "".join(f"{number},{number % 2}\n" for number in range(5)))
    Path("folder").mkdir()
    Path("junk").write_bytes(b"\x8f\x00\xff" * 60)
    Path("empty").touch()
    Path("list.json").write_text("[1]")
    Path("deep.json").write_text("[" * 100_000)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("values", [FEW, pytest.param(VALUES, marks=pytest.mark.slow)], ids=["few", "all"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_whatever_is_given_is_used_or_refused_in_one_line(
    command: list[str], values: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for value in values:
        status = main([word.replace("@", value) for word in command])
        said = capsys.readouterr().err.splitlines()
        away = value == "postgresql://"  # a server on this machine, which may not run
        fails = away or command[:2] == ["store", "check"]  # 1: damaged
        assert status in ((0, 1, 2, 5) if fails else (0, 2, 5)), (value, said)  # 5: there is no such data set
        errors = sum(line.startswith("error: ") for line in said)
        assert errors == (status in (2, 5) or (away and status == 1)), (value, said)
        assert "--debug" not in "".join(said), (value, said)
        assert all(len(line) < 12_000 for line in said)
