"""The studio over real run folders: who may do what, corrections, changes with their price, stale edits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
import pytest

from tests.integration.studio.review.test_access import routes
from tests.support.review_site import HTMX, Visitor
from tests.support.studio_site import StudioSite, faces_run, running_studio
from twothirds.flows.reviewing.page import PageSettings
from twothirds.flows.serving.app import StudioSettings, make_studio, studio_link
from twothirds.reports.curation.corrections import read_corrections
from twothirds.reports.curation.log import plan_change, read_log, record_change
from twothirds.reports.finished_run import Run
from twothirds.store import Store
from twothirds.studio.catalog import OpenRun

NAMES = ["beard", "facial hair", "hat"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = faces_run(tmp_path / "runs" / "faces", NAMES)
    begun = {
        "kind": "RunStarted",
        "run_id": made.summary.run_id,
        "name": "faces",
        "oracle": "x",
        "queries": 3,
        "compared": 30,
    }
    begun |= {"budget_usd": None, "at": "2026-01-01T00:00:00+00:00", "settings": {"dataset": "datasets/faces"}}
    (made.folder / "live.jsonl").write_text(json.dumps(begun) + "\n")
    return made


@pytest.fixture
def site(store: Store, run: Run, tmp_path: Path) -> Iterator[StudioSite]:
    del run
    with running_studio(store, tmp_path / "runs") as running:
        yield running


ROLES = ("nobody", "reviewer", "editor", "admin", "revoked", "expired")
STAFF = {"editor": 200, "admin": 200}
# What each role gets; whatever is not written here is refused with 403.
ALLOWED: dict[tuple[str, str], dict[str, int]] = {
    ("GET", "/s/{token}"): {},  # no token of this table is signed
    ("GET", "/metrics"): {},  # for programs that have the password
    ("GET", "/people"): {"admin": 200},
    ("POST", "/people/invite"): {"admin": 200},
    ("POST", "/people/revoke"): {"admin": 303},
    ("GET", "/runs"): STAFF,
    ("GET", "/runs/{key}"): STAFF,
    ("GET", "/runs/{key}/browse"): STAFF,
    ("GET", "/runs/{key}/browse/about"): STAFF,
    ("GET", "/runs/{key}/browse/found"): STAFF,
    ("GET", "/runs/{key}/browse/all"): STAFF,
    ("GET", "/runs/{key}/browse/example"): STAFF,
    ("POST", "/runs/{key}/browse/export"): STAFF,
    ("GET", "/runs/{key}/media/{row}/{size}"): STAFF,
    ("GET", "/runs/{key}/correct"): STAFF,
    ("POST", "/runs/{key}/correct"): {"editor": 303, "admin": 303},
    ("POST", "/runs/{key}/change"): {"editor": 422, "admin": 422},  # nobody paints
    ("POST", "/runs/{key}/archive"): {"editor": 303, "admin": 303},
    ("GET", "/runs/{key}/report"): {"editor": 404, "admin": 404},  # the run has none
    ("GET", "/runs/{key}/report/file"): {"editor": 404, "admin": 404},
    ("GET", "/comparisons/{key}/file"): {"editor": 404, "admin": 404},
    ("GET", "/runs/{key}/discovery"): STAFF,
    ("GET", "/runs/{key}/plot"): STAFF,
    ("GET", "/runs/{key}/structure"): STAFF,
    ("GET", "/runs/{key}/settings"): STAFF,
    ("GET", "/side-by-side"): {"editor": 422, "admin": 422},  # no two runs are named
    ("GET", "/components"): STAFF,
    ("GET", "/look"): {"admin": 200},
    ("GET", "/look/{row}"): {"admin": 404},  # of no data set
    ("GET", "/runs/{key}/thumbs/{row}"): STAFF,
    ("GET", "/costs"): STAFF,
    ("GET", "/tables/{key}"): {"editor": 404, "admin": 404},  # there is a run, and no table
    ("GET", "/comparisons/{key}"): {"editor": 404, "admin": 404},
    ("GET", "/start"): {"admin": 303},
    ("GET", "/start/{command}"): {"admin": 200},
    ("POST", "/start/{command}"): {"admin": 422},  # an empty form
    ("GET", "/started/{key}"): {"editor": 404, "admin": 404},  # nothing was started there
    ("POST", "/runs/{key}/steer"): {"editor": 409, "admin": 409},  # it does not run
    ("GET", "/runs/{key}/choose"): STAFF,
    ("GET", "/runs/{key}/again"): {"admin": 200},
    ("POST", "/runs/{key}/again"): {"admin": 422},  # it does not say how it was started
    ("POST", "/runs/{key}/export"): STAFF,
    ("GET", "/runs/{key}/events"): STAFF,
    ("GET", "/runs/{key}/pictures/{row}/{size}"): STAFF,
}
FIELDS = {
    "/people/invite": {"name": "somebody new", "role": "reviewer"},
    "/people/revoke": {"name": "nobody at all"},
    "/runs/{key}/steer": {"action": "stop"},
    "/runs/{key}/export": {"format": "wide-csv"},
    "/runs/{key}/correct": {"feature": "hat", "label": "yes"},
    "/runs/{key}/browse/export": {"kind": "ids", "rows": "Bw"},
    "/runs/{key}/change": {"action": "paint", "name": "hat", "seen": "0"},
}


def visitor_of(site: StudioSite, role: str) -> Visitor:
    if role == "nobody":
        return site.stranger()
    if role == "reviewer":
        return site.visitor("the reviewer")
    if role == "expired":
        link = studio_link(site.store, "the expired", "editor", replace(site.settings(), days=3e-6))
        visitor = site.stranger().open(link)
        time.sleep(0.3)
        return visitor
    visitor = site.staff(f"the {role}", "editor" if role == "revoked" else role)
    if role == "revoked":
        site.store.queue.people.revoke("the revoked")
    return visitor


def test_every_route_gives_every_role_what_the_table_says(site: StudioSite, run: Run) -> None:
    app = make_studio(site.store, StudioSettings((str(site.root),)))
    from twothirds.flows.reviewing.page import make_app

    assert routes(app) - routes(make_app(site.store, PageSettings())) == set(ALLOWED), "every route is in the table"
    for role in ROLES:
        visitor = visitor_of(site, role)
        for (method, path), allowed in sorted(ALLOWED.items()):
            visitor.get(f"/runs/{site.key(run)}" if role in STAFF else "/")
            address = path.format(
                token="forged", name="studio.css", key=site.key(run), row=1, size="small", command="enrich"
            )
            fields = {"example": run.findings.ids[0], **FIELDS.get(path, {})}
            reply = visitor.client.get(address) if method == "GET" else visitor.post(address, fields)
            wanted = allowed.get(role, 403)
            assert reply.status_code == wanted, f"{role}: {method} {path}"


def test_prometheus_reads_figures_with_the_password_alone(
    store: Store, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del run
    monkeypatch.setenv("TWOTHIRDS_METRICS_PASSWORD", "right")
    with running_studio(store, tmp_path / "runs") as site:
        client = site.stranger().client
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": "right"}):
            assert client.get("/metrics", headers=header).status_code == 403
        reply = client.get("/metrics", headers={"authorization": "Bearer right"})
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'twothirds_review_queue_length{queue=""} 0' in reply.text


@pytest.mark.parametrize(
    "address", ["/runs/..%2f..%2fetc", "/runs/000000000000", "/runs/{key}/media/999/small", "/runs/{key}/media/0/huge"]
)
def test_no_address_leads_out_of_the_runs(site: StudioSite, run: Run, address: str) -> None:
    assert site.staff("Ann", "editor").get(address.format(key=site.key(run))).status_code == 404


def test_runs_are_listed_found_sorted_and_archived(site: StudioSite, tmp_path: Path) -> None:
    cheap = faces_run(tmp_path / "runs" / "cheap", ["hat"], total_usd=0.5, finished_at="2026-02-01T10:00:00+00:00")
    faces_run(tmp_path / "runs" / "dear", ["hat"], total_usd=9.0, finished_at="2026-01-15T10:00:00+00:00")
    editor = site.staff("Ann", "editor")

    def names(address: str) -> list[str]:
        editor.get(address)
        return re.findall(r'<a href="/runs/[0-9a-f]{12}"><bdi>([^<]*)', editor.page)

    assert names("/runs") == ["cheap", "dear", "faces"]
    assert names("/runs?sort=cost") == ["dear", "cheap", "faces"]
    assert names("/runs?sort=name") == ["cheap", "dear", "faces"]
    assert names("/runs?q=CHEAP+simulated") == ["cheap"]
    editor.post(f"/runs/{site.key(cheap)}/archive", {})
    assert names("/runs") == ["dear", "faces"]
    assert names("/runs?archived=true") == ["cheap"]
    editor.post(f"/runs/{site.key(cheap)}/archive", {"back": "1"})
    assert names("/runs") == ["cheap", "dear", "faces"]


def test_a_link_by_the_name_of_the_folder_finds_its_run(site: StudioSite, run: Run) -> None:
    reply = site.staff("Ann", "editor").get("/runs/faces")
    assert (reply.status_code, reply.headers["location"]) == (303, f"/runs/{site.key(run)}")


def test_doubtful_labels_of_one_feature_come_first_and_a_click_corrects_one(site: StudioSite, run: Run) -> None:
    editor, key = site.staff("Ann", "editor"), site.key(run)
    most = max(run.findings.found, key=lambda found: int(found.doubtful.sum()))
    doubtful = int(most.doubtful.sum())
    editor.get(f"/runs/{key}/correct")
    assert f"{doubtful} labels" in editor.page
    example, feature = (
        unescape(re.findall(rf'name="{name}" value="([^"]*)"', editor.page)[place])
        for name, place in (("example", 0), ("feature", 0))
    )
    assert feature == most.name
    fields = {"example": example, "feature": feature, "seen": "0", "cell": "1"}
    cell = editor.post(f"/runs/{key}/correct", fields | {"label": "yes"}, headers=HTMX).text
    assert 'class="cell yes corrected"' in cell
    assert "corrected by <bdi>Ann</bdi>" in cell
    assert Run(run.folder).labels[feature][example] == 1
    [kept] = read_corrections(run.folder)
    assert (kept.by, len(kept.digest)) == ("Ann", 64)
    editor.get(f"/runs/{key}/correct?{urlencode({'feature': feature})}")
    assert f"{doubtful - 1} label" in editor.page
    editor.get(f"/runs/{key}/correct?{urlencode({'feature': feature, 'which': 'corrected'})}")
    assert "corrected by <bdi>Ann</bdi>" in editor.page
    cleared = editor.post(f"/runs/{key}/correct", fields | {"label": "clear", "seen": "1"}, headers=HTMX).text
    assert "corrected by" not in cleared
    reply = editor.post(f"/runs/{key}/correct", {**fields, "label": "yes", "seen": "2", "here": "which=all&page=1"})
    assert reply.headers["location"] == f"/runs/{key}/correct?which=all&page=1"


def test_the_others_on_a_page_are_confirmed_at_once_and_what_was_corrected_stays(site: StudioSite, run: Run) -> None:
    editor, key, ids = site.staff("Ann", "editor"), site.key(run), run.findings.ids
    before = run.labels["beard"]
    known = [name for name in ids[:12] if not pd.isna(before[name])]
    editor.get(f"/runs/{key}/correct?feature=beard&which=all")
    turned = "no" if before[known[0]] else "yes"
    fields = {"feature": "beard", "seen": "0"}
    assert editor.post(f"/runs/{key}/correct", fields | {"example": known[0], "label": turned}).status_code == 303
    assert editor.post(f"/runs/{key}/correct", fields | {"example": ids[:12], "label": "same"}).status_code == 303
    corrections = read_corrections(run.folder)
    assert [correction.example for correction in corrections] == known, "an unknown label cannot be confirmed"
    after = Run(run.folder).labels["beard"]
    assert after[known[0]] != before[known[0]]
    assert [after[name] for name in known[1:]] == [before[name] for name in known[1:]]
    assert editor.post(f"/runs/{key}/correct", fields | {"example": ids[0], "label": "perhaps"}).status_code == 422


def test_a_click_in_the_card_corrects_and_can_be_taken_back(site: StudioSite, run: Run) -> None:
    editor, key = site.staff("Ann", "editor"), site.key(run)
    name = next(name for name in run.findings.ids if run.labels["hat"][name] == 1)
    editor.get(f"/runs/{key}?feature=hat")
    fields = {"feature": "hat", "example": name, "seen": "0", "on": "features"}
    reply = editor.post(f"/runs/{key}/correct", fields | {"label": "no"})
    assert reply.headers["location"] == f"/runs/{key}?feature=hat&corrected=1"
    page = editor.get(reply.headers["location"]).text
    assert f"{name} lacks hat" in page
    back = page.partition(f"{name} lacks hat")[2].partition("</form>")[0]
    taken_back = dict(re.findall(r'name="(\w+)" value="([^"]*)"', back))
    assert editor.post(f"/runs/{key}/correct", taken_back).status_code == 303
    assert Run(run.folder).labels["hat"][name] == 1


def test_two_editors_do_not_overwrite_each_other_unseen(site: StudioSite, run: Run) -> None:
    ann, bob, key = site.staff("Ann", "editor"), site.staff("Bob", "editor"), site.key(run)
    for one in (ann, bob):
        one.get(f"/runs/{key}/correct?feature=hat&which=all")
    fields = {"example": run.findings.ids[0], "feature": "hat", "seen": "0", "cell": "1"}
    assert ann.post(f"/runs/{key}/correct", fields | {"label": "yes"}, headers=HTMX).status_code == 200
    refused = bob.post(f"/runs/{key}/correct", fields | {"label": "no"}, headers=HTMX)
    assert refused.status_code == 409
    assert "Somebody else has corrected this label" in refused.text
    assert "corrected by <bdi>Ann</bdi>" in refused.text, "as it is now"
    change = {"action": "rename", "name": "hat", "seen": "0", "confirmed": "1"}
    assert ann.post(f"/runs/{key}/change", change | {"to": "cap"}).status_code == 303
    refused = bob.post(f"/runs/{key}/change", change | {"to": "crown"})
    assert refused.status_code == 409
    assert "by Ann" in unescape(refused.text)
    assert Run(run.folder).features["name"].tolist() == ["beard", "facial hair", "cap"]


def test_a_change_that_costs_nothing_is_made_at_once_and_undone(site: StudioSite, run: Run) -> None:
    editor, key = site.staff("Ann", "editor"), site.key(run)
    editor.get(f"/runs/{key}")
    made = editor.post(f"/runs/{key}/change", {"action": "drop", "name": "hat", "seen": "0"})
    assert made.status_code == 303
    assert [(one.action, one.by) for one in read_log(run.folder)] == [("drop", "Ann")]
    assert "Undo" in editor.get(made.headers["location"]).text, "where it was made"
    editor.get(f"/runs/{key}/settings")
    assert "drop by <bdi>Ann</bdi>" in editor.page
    assert editor.post(f"/runs/{key}/change", {"action": "undo", "seen": "1"}).status_code == 303
    assert Run(run.folder).features["name"].tolist() == NAMES
    wrong = editor.post(f"/runs/{key}/change", {"action": "rename", "name": "hat", "to": "beard", "seen": "2"})
    assert wrong.status_code == 422
    assert "already has a feature" in wrong.text
    assert editor.post(f"/runs/{key}/change", {"action": "paint", "name": "hat", "seen": "2"}).status_code == 422


def test_what_must_be_asked_again_has_its_price_before_it_is_asked(store: Store, tmp_path: Path) -> None:
    from tests.integration.flows.runs.test_labels import discovered
    from tests.support.growing_worlds import World

    run = discovered(World(tmp_path / "runs", 12))
    name = str(run.features["name"][0])
    with running_studio(store, tmp_path / "runs") as site:
        owner, key = site.staff("Olga", "admin"), site.key(run)
        owner.get(f"/runs/{key}")
        command = {"action": "define", "name": name, "definition": "as the table says", "seen": "0"}
        shown = owner.post(f"/runs/{key}/change", command)
        owner.page = shown.text
        assert "36 questions and <em>$0.0360</em> at most" in shown.text
        too_little = owner.post(f"/runs/{key}/change", command | {"confirmed": "1", "budget": "0.001"})
        assert too_little.status_code == 422
        assert "raise --budget" in too_little.text
        assert owner.post(f"/runs/{key}/change", command | {"confirmed": "1", "budget": "0.0361"}).status_code == 303
    assert read_log(run.folder)[0].cost_usd > 0


def test_editors_and_reviewers_come_by_invitation_and_can_be_sent_away(site: StudioSite) -> None:
    owner = site.staff("Olga", "admin")
    owner.get("/people")
    for name, role, home in (("Ann", "editor", "/runs"), ("Rob", "reviewer", "/")):
        owner.page = owner.post("/people/invite", {"name": name, "role": role}).text
        link = re.findall(r'<code class="link">([^<]*)', owner.page)[0]
        guest = site.stranger().open(unescape(link))
        assert guest.get(home).status_code == 200
        owner.post("/people/revoke", {"name": name})
        assert guest.get(home).status_code == 403
    owner.post("/people/revoke", {"name": "Olga"})
    assert owner.get("/people").status_code == 200


def test_each_link_has_the_role_that_it_was_given(site: StudioSite) -> None:
    owner, old = site.staff("Olga", "admin"), site.visitor("Ann")
    editor = site.staff("Ann", "editor")
    assert (editor.get("/runs").status_code, old.get("/runs").status_code) == (200, 403), "the old link is not raised"
    assert editor.get("/").status_code == 200, "an editor may answer too"
    owner.get("/people")
    assert "<td>editor</td>" in owner.page
    owner.post("/people/revoke", {"name": "Ann"})
    assert (editor.get("/runs").status_code, old.get("/").status_code) == (403, 403)
    again = site.visitor("Ann")
    assert (again.get("/").status_code, again.get("/runs").status_code) == (200, 403), "invited as a reviewer"
    assert site.stranger().open(site.link("Ann").replace("/i/", "/s/")).get("/runs").status_code == 403
    same_name = site.staff("Olga", "editor")
    assert same_name.get("/people").status_code == 403, "the owner's name opens nothing"


def test_a_damaged_run_is_not_listed_and_damages_nothing_else(site: StudioSite, run: Run, tmp_path: Path) -> None:
    broken = faces_run(tmp_path / "runs" / "broken", ["hat"])
    (broken.folder / "run.json").write_text("{}")
    editor = site.staff("Ann", "editor")
    assert "broken" not in editor.get("/runs").text
    (run.folder / "answers.jsonl").write_text("nonsense\n")
    reply = editor.get(f"/runs/{site.key(run)}")
    assert reply.status_code == 422
    assert editor.get("/runs").status_code == 200


def test_a_page_counts_the_changes_that_it_shows_and_no_later_ones(run: Run) -> None:
    opened = OpenRun("faces", run.folder)
    assert "beard" in [one.name for one in opened.run.findings.found]
    change = plan_change(run, "rename", {"name": "beard", "to": "bearded"})
    record_change(run, change)  # by somebody else, before the page is drawn
    assert opened.changes == 0, "an edit made on this page is stale, and is refused as such"
    assert OpenRun("faces", run.folder).changes == 1


def test_a_doubtful_feature_is_marked_and_neither_counted_nor_exported(site: StudioSite, run: Run) -> None:
    counted, table = run.findings.counting, pd.read_csv(run.folder / "features.csv", keep_default_na=False)
    assert all(run.findings.marks[-1])
    table["consistent"] = [True] * (len(table) - 1) + [False]
    table.to_csv(run.folder / "features.csv", index=False)
    editor = site.staff("Ann", "editor")
    editor.get(f"/runs/{site.key(run)}")
    assert f"{counted - 1} feature" in editor.page
    editor.get(f"/runs/{site.key(run)}?{urlencode({'feature': table['name'].iloc[-1]})}")
    assert editor.page.count("doubtful: its own question contradicts it") == 1


def test_marks_that_were_judged_on_a_sample_say_so(site: StudioSite, run: Run) -> None:
    path = run.folder / "run.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    ids = run.findings.ids[:20]
    summary["dataset"] |= {"compared": len(ids), "compared_ids": ids}
    path.write_text(json.dumps(summary), encoding="utf-8")
    editor = site.staff("Ann", "editor")
    editor.get(f"/runs/{site.key(run)}")
    marks = zip(run.findings.found, Run(run.folder).findings.marks, strict=True)
    rare = [found.name for found, (interesting, _) in marks if not interesting]
    assert "to use, judged by labels of 20 sampled" in editor.page
    for name in rare:
        assert "of 20 sampled have it</li>" in editor.get(f"/runs/{site.key(run)}?{urlencode({'feature': name})}").text
