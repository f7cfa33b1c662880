"""report.html: one file that holds the whole story of a run, and a browser of its examples by their features."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from twothirds.discovery import UNKNOWN
from twothirds.reports.analysis import GroupsResult, TargetResult, compare_groups, compare_runs, predict_target
from twothirds.reports.browse import BrowsedColumn, ExampleCatalogue, browsed_columns
from twothirds.reports.curation import CuratedRun, checked_by_people, effective, read_log
from twothirds.reports.page.browser_data import browser_data, carried_columns, script_json, thumbnails
from twothirds.reports.page.correlations import heat_map, related, strongest
from twothirds.reports.page.feature_cards import card_example, feature_cards, kinds_asked
from twothirds.reports.page.history import aim_of, curves_of, history_of, outlook_of
from twothirds.reports.page.truth import AgainstTruth, against_truth
from twothirds.reports.run import (
    Findings,
    JsonPart,
    Rationale,
    RunError,
    RunFolder,
    names_of,
    public_source,
    read_reasons,
    replace_file,
    without_paths,
)
from twothirds.sources import Columns, Dataset, DatasetError, Example, Truth, load_dataset, read_metadata
from twothirds.studio.web import render_file

UNANSWERABLE = ", each chosen so that no feature known by then could answer it"
HOW_CHOSEN = {
    "auto": ", each of which asked for something other than what was known by then",
    "adaptive-triple": UNANSWERABLE,
    "adaptive-pair": UNANSWERABLE,
    "random-triple": " about examples drawn at random",
    "tagging": " about one example each",
}
STOPPED = {
    "queries": "questions used up",
    "budget": "budget used up",
    "oracle-unavailable": "the oracle could not be asked any more",
    "target-g": "wanted g reached",
    "nones": "NONE after NONE",
    "repeats": "answers named only what was known",
    "nothing-unresolved": "nothing unresolved",
    "stopped": "a person stopped it",
}
# The browser's own, which the studio serves too.
BROWSER_SCRIPTS = ("elements.js", "pictures.js", "choice.js", "facets.js", "tiles.js", "example.js", "browse.js")
SECTIONS = "report.json"
MOST_BEST = 12  # features on the first screen
MOST_EXAMPLES = 2_000  # more are not carried: the page is then a sample and says so


@dataclass(frozen=True)
class Page:
    """A report that was written; a notebook shows it in a frame."""

    path: Path
    target: TargetResult | None = None
    groups: GroupsResult | None = None

    def _repr_html_(self) -> str:
        content = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{content}" style="width:100%;height:820px;border:1px solid #8886"></iframe>'


def write_page(
    run: CuratedRun,
    *,
    dataset: Dataset | str | None = None,
    path: Path | None = None,
    target: str | None = None,
    tagging: CuratedRun | None = None,
    by: str | None = None,
    against: CuratedRun | None = None,
    plain: bool = False,
) -> Page:
    """Write the report of a run.

    `dataset` says where the data set is now, if not where the run found it. `target` is a column to predict from the
    features, with `tagging` for a control; `by` a column whose groups are compared, or `against` another run. What was
    asked for in an earlier report of the run is in this one too, unless it is `plain`."""
    asked = Sections(target=target, tagging=_path(tagging), by=by, against=_path(against))
    if tagging is not None:
        check_tagging(run, tagging)
    before = Sections() if plain else Sections.read(run.folder)
    read, problem = dataset_of(run.summary.settings, dataset)
    context = page_context(run, read)
    context["notices"] = [notice for notice in (problem, *context["notices"]) if notice]
    sections = asked.over(before)
    for name, analyse, wanted in (("target", _target, target), ("groups", _groups, by or against)):
        try:
            context[name] = analyse(run, read, sections)
        except RunError as error:
            if wanted is not None:
                raise
            context["notices"].append(f"A section that the report had before is left out: {error}")
    written = path or run.folder / "report.html"
    replace_file(written, lambda file: file.write(render(context)))
    if plain or sections != before:
        sections.write(run.folder)
    return Page(written, context["target"], context["groups"])


class Sections(JsonPart):
    """Those that were asked for with a report: stored beside the run, so that a report written again has them too."""

    target: str | None = None
    tagging: str | None = None  # run folder of the control, with `target`
    by: str | None = None
    against: str | None = None  # run folder

    @classmethod
    def read(cls, folder: Path) -> Sections:
        """None of them where the file is missing or not what was written."""
        try:
            return cls.model_validate_json((folder / SECTIONS).read_bytes())
        except (OSError, ValidationError):
            return cls()

    def write(self, folder: Path) -> None:
        text = json.dumps({name: value for name, value in self.to_json().items() if value is not None}, indent=2)
        replace_file(folder / SECTIONS, lambda file: file.write(text + "\n"))

    def over(self, before: Sections) -> Sections:
        """These, and of those before what they do not replace."""
        other_groups = self.by is not None or self.against is not None
        return Sections(
            target=self.target or before.target,
            tagging=self.tagging or (before.tagging if self.target in (None, before.target) else None),
            by=self.by if other_groups else before.by,
            against=self.against if other_groups else before.against,
        )


def check_tagging(run: CuratedRun, tagging: CuratedRun) -> None:
    """Raises RunError where the control is no tagging run, or one of other examples."""
    strategy, folder = tagging.summary.settings["strategy"], tagging.folder
    if strategy != "tagging":
        raise RunError(f"--tagging {folder} is a run with --strategy {strategy}: give one made with --strategy tagging")
    if tagging.summary.dataset.digest != run.summary.dataset.digest:
        raise RunError(
            f"--tagging {folder} is about other examples (of {tagging.summary.dataset.name}): give a tagging run of "
            f"the same data set as {run.folder}"
        )


def _path(run: CuratedRun | None) -> str | None:
    return str(run.folder.resolve()) if run else None


def _target(run: CuratedRun, dataset: Dataset | None, sections: Sections) -> TargetResult | None:
    if sections.target is None:
        return None
    tagging = CuratedRun(Path(sections.tagging)) if sections.tagging else None
    return predict_target(run.findings, dataset, sections.target, tagging.findings if tagging else None)


def _groups(run: CuratedRun, dataset: Dataset | None, sections: Sections) -> GroupsResult | None:
    if sections.by is not None:
        return compare_groups(run.findings, dataset, sections.by)
    if sections.against is None:
        return None
    against = CuratedRun(Path(sections.against))
    return compare_runs(run.findings, _name(run), against.findings, _name(against))


def _name(run: CuratedRun) -> str:
    return run.summary.dataset.name


def dataset_of(settings: Mapping[str, Any], given: Dataset | str | None) -> tuple[Dataset | None, str]:
    """The data set of a run or a table with these settings, or None and why there is none: a report can do without
    pictures."""
    if isinstance(given, Dataset):
        return given, ""
    spec = given or str(settings["dataset"])
    try:
        return load_dataset(spec, Columns.of(settings)), ""
    except DatasetError as error:
        if given:
            raise
        return None, f"The examples are not shown, because their data set cannot be read: {error}"


def page_context(run: CuratedRun, dataset: Dataset | None) -> dict[str, Any]:
    """Everything that the template shows, the results of further analyses apart."""
    findings = run.findings
    examples = _examples(findings, dataset)
    carried = _carried(findings, run.summary.dataset.digest)
    texts = [example.text if example else None for example in examples]
    pictures = thumbnails([examples[row] for row in carried])
    matrix = findings.matrix
    truth = _truth(findings, dataset)
    history = history_of(run, findings)
    together = related(matrix[:, findings.labelled])
    places = {int(row): place for place, row in enumerate(carried)}
    show = partial(card_example, findings, examples, places)
    columns, left_out = carried_columns(_columns(findings, dataset, carried))
    too_large = [f"The page does not carry columns whose values are too long for it: {', '.join(left_out)}."]
    catalogue = ExampleCatalogue(findings, texts, columns)
    cards = feature_cards(findings, show, carried, truth)
    best = best_of(cards, findings)
    return {
        "summary": run.summary,
        "counting": findings.counting,
        "best": best[:MOST_BEST],
        "listed": [*best, *(card for card in cards if card not in best)],
        "doubt": _doubt(findings),
        "known_labels": sum(found.labelled for found in findings.found),
        "checked": " ".join(checked_by_people(findings.found).sentences()),
        "source": public_source(run.summary),
        "oracle": without_paths(str(run.summary.settings.get("oracle", ""))),
        "aim": aim_of(run.folder, run.summary),
        "votes": int(sum(found.vote_counts.votes.sum() for found in findings.found)),
        "predicted": sum(int(found.predicted.sum()) for found in findings.found),
        "how_chosen": HOW_CHOSEN.get(run.summary.settings["strategy"], ""),
        "stopped": STOPPED.get(run.summary.stopped_because, run.summary.stopped_because),
        "findings": findings,
        "cards": cards,
        "reasons": _reasons(run.folder),
        "history": history,
        "outlook": outlook_of(history),
        "curves": curves_of(history),
        "heat": heat_map(together, names_of(findings.found)) if len(findings.found) > 1 else "",
        "together": strongest(together),
        "tree": findings.tree(),
        "truth": truth,
        "problems": problems_of(run, findings),
        "curation": effective(read_log(run.folder)),
        "kind": "texts" if any(texts) else "images",
        "noun": _noun(examples),
        "show": show,
        "places": places,
        "carried": len(carried),
        "notices": [*_notices(findings, examples, carried, dataset, run), *(too_large if left_out else [])],
        "data": script_json(browser_data(catalogue, findings, carried, pictures)),
        "pictures": script_json(pictures if any(pictures) else []),
        "asked_of": kinds_asked(findings.comparisons),
        "target": None,
        "groups": None,
    }


def best_of(cards: list[dict[str, Any]], findings: Findings) -> list[dict[str, Any]]:
    """The cards of the features to use, those first that split the examples most evenly."""
    marked = zip(cards, findings.marks, strict=True)
    used = [card for card, marks in marked if all(marks) and not card["found"].is_doubtful]
    return sorted(used, key=lambda card: abs(card["share"] - 0.5))


def _doubt(findings: Findings) -> dict[str, Any]:
    """Of the labels of which it is known how many are doubtful, and how often several votes agreed."""
    judged = [found for found in findings.found if found.doubt_is_known]
    counts = [found.vote_counts for found in findings.found]
    voted_twice = sum(int((count.yes + count.no >= 2).sum()) for count in counts)
    alike = sum(int(((count.yes + count.no >= 2) & (np.minimum(count.yes, count.no) == 0)).sum()) for count in counts)
    return {
        "labels": sum(found.labelled for found in judged),
        "doubtful": sum(int(found.doubtful.sum()) for found in judged),
        "voted_twice": voted_twice,
        "unanimous": alike / max(voted_twice, 1),
    }


def render(context: dict[str, Any]) -> str:
    styles = ("tokens.css", "base.css", "components.css", "browser.css", "report.css", "views.css")
    return render_file("report/page.html", context, styles, (*BROWSER_SCRIPTS, "catalogue.js", "report.js"))


def _examples(findings: Findings, dataset: Dataset | None) -> list[Example | None]:
    by_id = {example.id: example for example in dataset.examples} if dataset else {}
    return [by_id.get(name) for name in findings.ids]


def _columns(findings: Findings, dataset: Dataset | None, carried: NDArray[np.intp]) -> list[BrowsedColumn]:
    """The data set's own, of the examples that the page carries, and attributes."""
    try:
        table = read_metadata(dataset, {findings.ids[row] for row in carried}) if dataset else None
    except DatasetError:
        table = None
    return browsed_columns(table, findings.attributes, findings.ids)


def _noun(examples: list[Example | None]) -> str:
    """What the examples are."""
    texts = any(example and example.text is not None for example in examples)
    pictures = any(example and example.image is not None for example in examples)
    return "texts and pictures" if texts and pictures else "texts" if texts else "images"


def _carried(findings: Findings, digest: str) -> NDArray[np.intp]:
    """The rows that the page carries: all, or those of the questions and others at random, the same every time."""
    n = len(findings.ids)
    if n <= MOST_EXAMPLES:
        return np.arange(n)
    row_of = {name: row for row, name in enumerate(findings.ids)}
    needed = {
        row_of[name]
        for feature in findings.found
        if feature.asked
        for name in (*feature.asked.examples, *feature.asked.without)
        if name in row_of
    }
    shuffled = np.random.default_rng(int(digest[:8], 16)).permutation(n)
    labelled = findings.labelled
    rest = sorted((int(row) for row in shuffled if int(row) not in needed), key=lambda row: not labelled[row])
    chosen = [*sorted(needed), *rest][:MOST_EXAMPLES]
    return np.array(sorted(chosen), np.intp)


def _truth(findings: Findings, dataset: Dataset | None) -> AgainstTruth | None:
    if dataset is None or dataset.truth is None or not findings.found:
        return None
    row_of = {example.id: row for row, example in enumerate(dataset.examples)}
    rows = [row_of.get(name, -1) for name in findings.ids]
    known = np.where(np.array(rows)[:, None] >= 0, dataset.truth.matrix[rows], np.int8(UNKNOWN))
    truth = Truth(dataset.truth.columns, known.astype(np.int8))
    return against_truth(names_of(findings.found), findings.matrix, truth)


def _notices(
    findings: Findings,
    examples: list[Example | None],
    carried: NDArray[np.intp],
    dataset: Dataset | None,
    run: CuratedRun,
) -> list[str]:
    """What the reader must know before believing the page."""
    now = run.summary.model_copy(update={"doubtful": [found.name for found in findings.found if found.is_doubtful]})
    notices = [*now.warnings, *now.notices]
    if predicted := sum(int(found.predicted.sum()) for found in findings.found):
        known = sum(found.labelled for found in findings.found)
        notices.append(
            f"{predicted:,} of {known:,} labels are predicted and were not put to the oracle. They are counted in all "
            "figures; in the cards their examples have a dashed frame, and an example that is opened names them."
        )
    if len(carried) < len(findings.ids):
        notices.append(
            f"This page carries {len(carried):,} of the {len(findings.ids):,} examples: those of the questions and "
            "others at random. Pictures, strips and the browser are of these; all other figures count every example."
        )
    missing = sum(example is None for example in examples)
    if dataset is not None and missing:
        notices.append(f"{missing:,} examples of the run are no longer in the data set and are shown by their ids.")
    elif dataset is not None and dataset.digest != run.summary.dataset.digest:
        notices.append("The data set has changed since the run: what is shown is what it holds now.")
    if dataset is not None:
        notices += [f"{note[0].upper()}{note[1:]}." for note in dataset.notes()]
    return notices


def _reasons(folder: Path) -> dict[str, list[Rationale]]:
    """By the name of the feature."""
    by_name: dict[str, list[Rationale]] = {}
    for reason in read_reasons(folder):
        by_name.setdefault(reason.feature, []).append(reason)
    return by_name


def problems_of(run: RunFolder, findings: Findings) -> dict[str, list[Any]]:
    """What did not go as it should: comparisons with their number, features, and skipped rows. Answers that are
    `repeated` named a feature that was known already."""
    names = set(run.found_features["name"])
    seen: set[str] = set()
    unusable, none, repeated = [], [], []
    for number, asked in enumerate(findings.comparisons, start=1):
        if asked.verdict == "none":
            none.append((number, asked))
        elif asked.feature is None:
            unusable.append((number, asked))
        for answer in asked.by_feature:
            if answer.feature is not None and (answer.feature in seen or answer.feature not in names):
                repeated.append((number, answer))
            elif answer.feature is not None:
                seen.add(answer.feature)
    return {
        "unusable": unusable,
        "none": none,
        "repeated": repeated,
        "features": _feature_problems(findings),
        "left_out": run.summary.dataset.left_out,
    }


def _feature_problems(findings: Findings) -> list[dict[str, Any]]:
    """Of features with refused or unreadable votes, or labels that stay unknown; the most frequent reasons first."""
    compared = findings.labelled
    affected = []
    for order, found in enumerate(findings.found, start=1):
        refused, unreadable = (int(found.vote_counts.cast[side].sum()) for side in (2, 3))
        unknown = 0 if found.look else int((found.labels[compared] == UNKNOWN).sum())
        if refused or unreadable or unknown:
            reasons = sorted(found.vote_counts.notes.items(), key=lambda reason: -reason[1])[:5]
            counts = {"refused": refused, "unreadable": unreadable, "unknown": unknown}
            affected.append({"feature": found.name, "order": order, "reasons": reasons, **counts})
    return affected
