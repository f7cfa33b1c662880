"""Results elsewhere: run folders and growing tables on S3 and Google Cloud Storage, fetched and uploaded whole."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import platformdirs
import pytest

from tests.support.clouds import Clouds, clouds
from tests.support.no_prefect import run_without_prefect
from twothirds.flows.compare.flow import compare_flow
from twothirds.flows.compare.preparation import prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.flow import discover_flow
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api.runs import Caller
from twothirds.models.oracle import ServerAway
from twothirds.reports.versions import ContractViolated
from twothirds.sources import DatasetError


@pytest.fixture(scope="module")
def cloud() -> Iterator[Clouds]:
    with clouds() as made:
        made.put_s3("lab/.keep", b"")
        yield made


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """With truth, for a simulated crowd."""
    return write_texts(tmp_path / "texts.csv", 12)


def discover(prepared: Prepared) -> None:
    run_without_prefect(discover_flow, prepared.settings, Caller(prepared=prepared))


def write_texts(path: Path, count: int) -> Path:
    path.write_text("id,text\n" + "".join(f"{n},text number {n}\n" for n in range(count)))
    columns = ["id", "even", "third", "small"]
    rows = [[n, int(n % 2 == 0), int(n % 3 == 0), int(n < 5)] for n in range(count)]
    pd.DataFrame(rows, columns=columns).to_csv(path.with_name("truth.csv"), index=False)
    return path


def discover_settings(texts: Path, out: str, **changes: Any) -> DiscoverSettings:
    store = str(texts.with_name("store.sqlite"))
    return DiscoverSettings.model_validate(
        {"dataset": str(texts), "oracle": "simulated", "queries": 4, "store": store, "out": out, **changes}
    )


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, cloud: Clouds) -> str:
    address = f"{request.param}://lab"
    cloud.put(f"{address}/.keep", b"")
    return address


def test_a_run_folder_elsewhere_is_complete_and_goes_on_where_it_was(cloud: Clouds, bucket: str, texts: Path) -> None:
    place = f"{bucket}/runs/one"
    discover(prepare(discover_settings(texts, place)))
    kept = json.loads(cloud.get(f"{place}/run.json"))
    assert kept["queries"] == 4
    for name in ("features.csv", "labels.csv", "labels.parquet", "answers.jsonl", "report.html"):
        assert cloud.get(f"{place}/{name}")
    shutil.rmtree(platformdirs.user_data_dir("twothirds"))  # as on another machine
    discover(prepare(discover_settings(texts, place, queries=6)))
    assert json.loads(cloud.get(f"{place}/run.json"))["queries"] == 6
    with pytest.raises(Exception, match="holds another run"):
        prepare(discover_settings(texts, place, seed=3))


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(cloud: Clouds, bucket: str, texts: Path) -> None:
    prepared = prepare(discover_settings(texts, f"{bucket}/runs/two"))
    cloud.put(f"{bucket}/runs/two/run.json", b"{}")
    with pytest.raises(ServerAway, match="somebody else has written it"):
        discover(prepared)
    assert cloud.get(f"{bucket}/runs/two/run.json") == b"{}"


def test_a_bucket_that_is_not_there_is_reported_before_anything_is_asked(bucket: str, texts: Path) -> None:
    missing = bucket.replace("lab", "nobody")
    with pytest.raises(DatasetError, match=f"cannot write to '{missing}/runs'") as caught:
        prepare(discover_settings(texts, f"{missing}/runs"))
    assert "\n" not in str(caught.value)


def test_a_table_elsewhere_grows_from_machine_to_machine(cloud: Clouds, bucket: str, texts: Path) -> None:
    store = str(texts.with_name("store.sqlite"))
    chosen: dict[str, Any] = {"dataset": str(texts), "oracle": "simulated", "store": store}
    enrich = EnrichSettings(**chosen, features="even: is even", out=f"{bucket}/table")
    assert enrich_with(enrich).to_json()["added"] == 12
    shutil.rmtree(platformdirs.user_data_dir("twothirds"))
    write_texts(texts, 15)
    summary = enrich_with(enrich).to_json()
    assert (summary["added"], summary["unchanged"]) == (3, 12)
    table = pd.read_parquet(io.BytesIO(cloud.get(f"{bucket}/table/labels.parquet")))
    assert len(table) == 15
    for version, rows in ((1, 12), (2, 3)):
        for name in (f"history/version={version}/rows.parquet", f"provenance/version={version}/cells.parquet"):
            assert len(pd.read_parquet(io.BytesIO(cloud.get(f"{bucket}/table/{name}")))) == rows
    assert not list(Path(platformdirs.user_data_dir("twothirds")).rglob("version=1")), "fetched, and not needed"
    assert json.loads(cloud.get(f"{bucket}/table/schema.json"))["version"] == 2
    assert forecast_enrichment(enrich).examples == 0
    enrich_with(enrich.model_copy(update={"propose": 3}))
    assert cloud.get(f"{bucket}/table/proposals.csv").startswith(b"name,")


def test_a_bad_night_leaves_the_table_elsewhere_in_place(cloud: Clouds, bucket: str, texts: Path) -> None:
    chosen: dict[str, Any] = {"dataset": str(texts), "oracle": "simulated", "store": str(texts.with_name("s.sqlite"))}
    enrich = EnrichSettings(**chosen, features="even: is even", out=f"{bucket}/strict")
    enrich_with(enrich)
    before = cloud.get(f"{bucket}/strict/labels.parquet")
    write_texts(texts, 15)
    expect = texts.with_name("expect.json")
    expect.write_text('{"rows": {"max": 12}}')
    with pytest.raises(ContractViolated, match="15 rows, at most 12 are expected"):
        enrich_with(enrich.model_copy(update={"expect": str(expect)}))
    assert cloud.get(f"{bucket}/strict/labels.parquet") == before
    assert json.loads(cloud.get(f"{bucket}/strict/enrich.json"))["stopped_because"] == "contract"
    assert len(pd.read_parquet(io.BytesIO(cloud.get(f"{bucket}/strict/labels.refused.parquet")))) == 15


def test_a_comparison_on_s3(cloud: Clouds, texts: Path) -> None:
    settings = CompareSettings(
        dataset=str(texts),
        oracles=("simulated", "simulated?flip=0.1"),
        features="even: is even; small: is small",
        votes="3",
        comparisons=2,
        draws=100,
        store=str(texts.with_name("store.sqlite")),
        out="s3://lab/compared",
    )
    prepared = prepare_comparison(settings)
    run_without_prefect(compare_flow, settings, Caller(prepared=prepared))
    assert b"<html" in cloud.get_s3("lab/compared/compare.html")
    assert json.loads(cloud.get_s3("lab/compared/comparison.json"))
