"""Data sets behind signed addresses: they are read, and their tokens are in no file, no line and no traceback."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.drawn import draw
from tests.support.web_folder import web_folder
from tests.support.written_files import written_files
from twothirds.flows.cli.app import main
from twothirds.flows.prefect_api.executor import send_history

TOKEN = "qzmarked/zx9q+w04k"  # as it stands in an address, the two signs are escaped
SENT = "qzmarked%2Fzx9q%2Bw04k"
QUERY = f"X-Amz-Expires=900&X-Amz-Signature={SENT}"
PICTURES = 12
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A table, its truth, pictures beside it, signed addresses of others, one of which is not good any more."""
    folder = tmp_path / "web"
    ids = [f"p{number}" for number in range(PICTURES)]
    for number, name in enumerate(ids):
        draw(folder / "pictures" / f"{name}.png", f"#{20 * number:02x}4080")
    with web_folder(folder, TOKEN) as at:
        beside = [f"{name},pictures/{name}.png" for name in ids[: PICTURES // 2]]
        signed = [f"{name},{at}/pictures/{name}.png?sig={SENT}" for name in ids[PICTURES // 2 :]]
        gone = [f"old,{at}/pictures/p0.png?sig={SENT}gone", f"none,{at}/pictures/none.png?sig={SENT}"]
        (folder / "table.csv").write_text("\n".join(["id,image", *beside, *signed, *gone]))
        traits = [f"{name},{number & 1},{number >> 1 & 1}" for number, name in enumerate(ids)]
        (folder / "truth.csv").write_text("\n".join(["id,odd,second", *traits]))
        yield at


def leaks(*folders: Path) -> list[str]:
    found = {str(path): b"qzmarked" in content for path, content in written_files(*folders) if path.name != "table.csv"}
    assert len(found) > 8
    return [path for path, leaked in found.items() if leaked]


@pytest.mark.usefixtures("prefect_url")
def test_a_signed_data_set_is_read_and_its_token_is_nowhere(
    address: str, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_QUERY", QUERY)
    dataset = f"{address}/table.csv?${{MY_QUERY}}"
    store = ["--store", str(tmp_path / "s.sqlite")]
    run = ["--oracle", "simulated?flip=0.3&seed=1", "--queries", "3", *store, "--out", str(tmp_path / "run")]
    assert main(["discover", dataset, "--votes", "3", *run]) == 0
    assert main(["export", str(tmp_path / "run"), "--dataset", dataset, "--out", str(tmp_path / "export")]) == 0
    table = ["--features", str(tmp_path / "run"), "--out", str(tmp_path / "table"), *store]
    assert main(["enrich", dataset, "--oracle", "simulated", *table]) == 0
    both = ["--oracles", "simulated", "simulated?flip=0.1", "--queries", "2", "--out", str(tmp_path / "both"), *store]
    assert main(["compare", dataset, *both]) == 0
    send_history()
    printed = capsys.readouterr()
    assert "qzmarked" not in printed.out + printed.err
    assert "${MY_QUERY}" in (tmp_path / "run" / "run.json").read_text()
    assert f"{address}/pictures/p7.png?sig=***" in (tmp_path / "export" / "doubtful.csv").read_text()
    home = Path(os.environ["PREFECT_HOME"]).parent
    assert any(home.rglob("*.db"))
    assert leaks(tmp_path, home) == []


def test_people_are_not_asked_about_pictures_whose_addresses_cannot_be_kept(
    address: str, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_QUERY", QUERY)
    store = ["--store", str(tmp_path / "s.sqlite"), "--out", str(tmp_path / "run")]
    assert main(["discover", f"{address}/table.csv?${{MY_QUERY}}", "--oracle", "human", *store]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "download the pictures and give the folder" in line
    assert "qzmarked" not in line
    assert leaks(tmp_path) == []


@pytest.mark.parametrize(
    "query", [QUERY, f"token={SENT}", f"sig={SENT}&se=2", f"AWSAccessKeyId=A&Signature={SENT}", f"v=1#key={SENT}"]
)
def test_an_address_with_a_token_is_refused_in_one_line_that_tells_the_remedy(
    capsys: Printed, tmp_path: Path, query: str
) -> None:
    oracle = ["--oracle", "simulated", "--store", str(tmp_path / "s.sqlite")]
    assert main(["discover", f"https://host.invalid/table.csv?{query}", *oracle]) == 2
    asked = f"openai:gpt-4o-mini?base_url=https%3A%2F%2Fhost.invalid%2Fv1%3Fsig={SENT}"
    assert main(["discover", "datasets/faces", "--oracle", asked]) == 2
    printed = capsys.readouterr()
    dataset, base = printed.err.splitlines()
    assert "put it into a variable and write '${NAME}' in its place" in dataset
    assert "set OPENAI_BASE_URL instead" in base
    assert "qzmarked" not in printed.out + printed.err


@pytest.mark.parametrize("held", [QUERY.replace("w04k", "other"), "", f"sig={SENT}"])
def test_what_goes_wrong_with_a_signed_address_is_one_line_without_the_token(
    address: str, capsys: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: str
) -> None:
    monkeypatch.setenv("MY_QUERY", held)
    name = "gone.csv" if held.startswith("sig") else "table.csv"
    command = ["discover", f"{address}/{name}?${{MY_QUERY}}", "--oracle", "simulated", "--store", str(tmp_path / "s")]
    assert main(command) == (5 if held else 2)
    with pytest.raises(Exception, match=r".") as caught:
        main([*command, "--debug"])
    printed = capsys.readouterr()
    assert printed.err.count("error: ") == 1
    assert "${MY_QUERY}" in printed.err or "MY_QUERY is not set" in printed.err
    assert "qzmarked" not in printed.out + printed.err + "".join(traceback.format_exception(caught.value))


def test_a_table_cannot_carry_a_variable_away(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from twothirds.sources.load import load_dataset

    monkeypatch.setenv("MY_QUERY", QUERY)
    monkeypatch.setenv("TWOTHIRDS_PRIVATE_HOSTS", "127.0.0.1")
    rows = ["id,image", f"a,{address}/pictures/p0.png?${{MY_QUERY}}", f"b,{address}/pictures/p1.png?sig={SENT}"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    data = load_dataset(str(tmp_path / "t.csv"))
    assert [example.id for example in data.examples] == ["b"]
    assert [bad.id for bad in data.quarantined] == ["a"]
