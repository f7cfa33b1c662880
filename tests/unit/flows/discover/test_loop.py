from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.asking import Asked
from tests.support.made import crowd_of, letters, random_truth, texts
from twothirds.discovery import UNKNOWN
from twothirds.discovery.strategies import make_strategy
from twothirds.flows.discover.findings import Progress, StopReason
from twothirds.flows.discover.loop import Asker, Limits, Loop
from twothirds.models.crowd import Asks
from twothirds.models.labelling import Elicited, LabelBatch, Votes, collect_answers, collect_votes
from twothirds.models.oracle import Answer, Compare, Feature, NamedFeature, OracleUnavailable, Verdict
from twothirds.sources import Example


def labelling(asked: Asks, examples: Sequence[Example], votes: int = 1) -> Callable[[list[Feature]], Votes]:
    return lambda features: collect_votes(asked, LabelBatch(examples, features, votes))


def discovered(
    truth: NDArray[np.int8],
    limits: Limits,
    votes: int = 1,
    strategy: str = "adaptive-triple",
    options: dict[str, Any] | None = None,
    **behaviour: Any,
) -> Progress:
    examples = texts(len(truth))
    crowd = Asked(crowd_of(truth, **behaviour))
    made = make_strategy(strategy, len(examples), np.random.default_rng(0), **(options or {}))
    return Loop(made, examples, limits, Asker(partial(collect_answers, crowd), labelling(crowd, examples, votes))).run()


def test_labels_of_an_unerring_crowd_are_the_truth() -> None:
    truth = random_truth(30, 10)
    progress = discovered(truth, Limits(queries=8))
    columns = {f"feature {chr(97 + column)}": column for column in range(10)}
    assert progress.findings
    for finding in progress.findings:
        assert (finding.labels == truth[:, columns[finding.feature.name]]).all()
        assert finding.consistent


def test_labels_that_contradict_the_question_make_a_feature_doubtful_and_missing_ones_do_not() -> None:
    progress = discovered(random_truth(30, 10), Limits(queries=8))
    place = progress.flags.index(True)
    finding, asked = progress.findings[place], progress.findings[place].asked[0]
    was = int(finding.labels[asked])
    finding.labels[asked] = UNKNOWN
    assert finding.consistent
    finding.labels[asked] = 1 - was
    assert not finding.consistent
    assert progress.doubtful == [finding.feature.name]


def test_it_stops_after_the_wanted_queries() -> None:
    progress = discovered(random_truth(30, 10), Limits(queries=4))
    assert progress.stopped is StopReason.QUERIES
    assert progress.queries == len(progress.g_curve) == 4


def test_it_stops_at_the_target_g() -> None:
    progress = discovered(random_truth(30, 20), Limits(queries=50, target_g=0.3))
    assert progress.stopped is StopReason.TARGET_G
    assert progress.g <= 0.3 < progress.g_curve[-2]


def test_it_stops_when_nothing_is_unresolved() -> None:
    progress = discovered(random_truth(8, 30), Limits(queries=500))
    assert progress.stopped is StopReason.EXHAUSTED
    assert progress.unresolved == 0


def test_beyond_exhaustion_it_goes_on_and_finds_more() -> None:
    truth = random_truth(8, 30)
    exhausted = discovered(truth, Limits(queries=30))
    beyond = discovered(truth, Limits(queries=30), options={"beyond": True})
    assert exhausted.stopped is StopReason.EXHAUSTED
    assert beyond.stopped is StopReason.QUERIES
    assert len(beyond.findings) > len(exhausted.findings)
    assert any(comparison.other_than_known for comparison, _ in beyond.asked)


def test_it_stops_after_nones_in_a_row() -> None:
    progress = discovered(np.zeros((9, 1), np.int8), Limits(queries=50, nones=5))
    assert progress.stopped is StopReason.NONES
    assert progress.queries == 5


@pytest.mark.parametrize("labels_after", [1, 4, None])
def test_a_name_heard_again_is_not_a_second_feature(labels_after: int | None) -> None:
    progress = discovered(random_truth(20, 5), Limits(queries=40, labels_after=labels_after), strategy="random-triple")
    names = [finding.feature.name for finding in progress.findings]
    assert len(names) == len(set(names)) <= 5
    assert progress.repeated > 0


def test_a_majority_of_votes_repairs_flipped_labels() -> None:
    truth = random_truth(60, 10)
    columns = {f"feature {chr(97 + column)}": column for column in range(10)}

    def errors(votes: int) -> float:
        progress = discovered(truth, Limits(queries=5), votes=votes, flip=0.2)
        wrong = [(f.labels != truth[:, columns[f.feature.name]]).mean() for f in progress.findings]
        return float(np.mean(wrong))

    assert errors(9) < 0.06 < errors(1)


def test_answers_are_learned_in_the_order_of_the_questions() -> None:
    truth = random_truth(30, 12)
    quick = discovered(truth, Limits(queries=12, voters=3))
    late = discovered(truth, Limits(queries=12, voters=3), latency=0.0005, width=5)
    assert [f.feature for f in quick.findings] == [f.feature for f in late.findings]
    assert [c for c, _ in quick.asked] == [c for c, _ in late.asked]


def test_a_feature_that_selects_the_same_or_the_other_examples_is_said_to_be_a_twin() -> None:
    truth = random_truth(30, 4)
    truth[:, 1], truth[:, 2] = truth[:, 0], 1 - truth[:, 0]
    findings = discovered(truth, Limits(queries=60), strategy="tagging").findings
    twins = {finding.feature.name: str(finding.twin or "") for finding in findings}
    first, *others = (name for name in twins if name != "feature d")
    relations = {"feature a": "same", "feature b": "same", "feature c": "other"}
    for name in others:
        relation = "same as" if relations[name] == relations[first] else "complement of"
        assert twins[name].startswith(relation)
    assert len(others) == 2
    assert twins[first] == twins["feature d"] == ""


@pytest.mark.parametrize("again", ["trait-x", "the TRAIT X", "shows traits x"])
def test_a_known_feature_in_other_words_is_not_labelled_again(again: str) -> None:
    answers = iter(["trait x", again, "trait y"])
    labelled: list[str] = []
    examples = texts(9)

    def compare(questions: list[Compare]) -> Elicited:
        return Elicited([Answer(one, Verdict.FEATURE, "me", Feature(next(answers))) for one in questions])

    def label(features: list[Feature]) -> Votes:
        labelled.extend(feature.name for feature in features)
        return Votes.empty(features, len(examples), 1)

    strategy = make_strategy("random-triple", len(examples), np.random.default_rng(0))
    progress = Loop(strategy, examples, Limits(queries=3), Asker(compare, label)).run()
    assert labelled == ["trait x", "trait y"]
    assert progress.repeated == 1


def test_a_run_ends_early_when_answers_name_only_what_is_known() -> None:
    examples = texts(20)

    def compare(questions: list[Compare]) -> Elicited:
        return Elicited([Answer(asked, Verdict.FEATURE, "me", Feature("trait x")) for asked in questions])

    def label(features: list[Feature]) -> Votes:
        return Votes.empty(features, len(examples), 1)

    strategy = make_strategy("auto", len(examples), np.random.default_rng(0))
    progress = Loop(strategy, examples, Limits(queries=35), Asker(compare, label)).run()
    assert progress.stopped is StopReason.REPEATS
    assert (progress.queries, progress.repeated, len(progress.findings)) == (11, 10, 1)
    assert progress.notice.startswith("stopped after 11 of 35 queries: the last 10 answers named known features only")


@pytest.mark.parametrize("answered", [0, 3])
def test_an_oracle_that_never_answered_is_an_error_and_one_that_stops_answering_leaves_what_was_found(
    answered: int,
) -> None:
    examples, left = texts(30), answered
    crowd = Asked(crowd_of(random_truth(30, 10)))

    def compare(questions: list[Compare]) -> Elicited:
        nonlocal left
        if not left:
            return Elicited([None] * len(questions), OracleUnavailable("gone"))
        left -= 1
        return collect_answers(crowd, questions)

    strategy = make_strategy("adaptive-triple", len(examples), np.random.default_rng(0))
    loop = Loop(strategy, examples, Limits(queries=8), Asker(compare, labelling(crowd, examples)))
    if not answered:
        with pytest.raises(OracleUnavailable, match=r"^gone$"):
            loop.run()
    else:
        assert loop.run().stopped is StopReason.UNAVAILABLE
        assert loop.progress.queries == answered


class LiveRuns:
    """A discovery by `auto`, and what it asks in which order: names that a question is told, and names labelled."""

    def __init__(self, limits: Limits, truth: NDArray[np.int8] | None = None) -> None:
        truth = random_truth(40, 30) if truth is None else truth
        self.examples, self.asked = texts(len(truth)), list[tuple[str, list[str]]]()
        crowd = Asked(crowd_of(truth))
        put = labelling(crowd, self.examples)

        def compare(questions: list[Compare]) -> Elicited:
            self.asked += [("compare", list(one.known)) for one in questions]
            return collect_answers(crowd, questions)

        def label(features: list[Feature]) -> Votes:
            self.asked.append(("label", [one.name for one in features]))
            return put(features)

        strategy = make_strategy("auto", len(truth), np.random.default_rng(0), most=limits.per_question)
        self.loop = Loop(strategy, self.examples, limits, Asker(compare, label))

    @property
    def kinds(self) -> str:
        """A letter for each step: a comparison, or labels."""
        return "".join(kind[0] for kind, _ in self.asked)


def test_features_of_several_questions_are_labelled_together_and_each_question_is_told_the_names_before_it() -> None:
    run = LiveRuns(Limits(queries=12, per_question=2, labels_after=5))
    progress = run.loop.run()
    assert run.kinds == "ccccclccccclccl"
    told = [names for kind, names in run.asked if kind == "compare"]
    for (_, answer), names, later in zip(progress.asked, told, told[1:], strict=False):
        assert later[: len(names)] == names
        assert {one.feature.name for one in answer.features} <= set(later)
    labelled = [name for kind, names in run.asked if kind == "label" for name in names]
    assert labelled == [finding.feature.name for finding in progress.findings]
    assert len(progress.g_curve) == progress.queries == 12
    assert progress.waiting == 0


def test_questions_before_the_first_labels_follow_from_the_answers_so_far() -> None:
    nothing, much = np.zeros((40, 4), np.int8), random_truth(40, 60)
    little, enough = (
        LiveRuns(Limits(queries=12, per_question=3, labels_after=None), one).loop.run() for one in (nothing, much)
    )
    asked, other = ([question.kind for question, _ in run.asked] for run in (little, enough))
    assert asked[0] == other[0]
    assert asked != other


def test_a_longer_run_asks_the_same_questions_first() -> None:
    short, long = (LiveRuns(Limits(queries=queries, labels_after=5)).loop.run() for queries in (7, 20))
    assert [answer.question for _, answer in short.asked] == [answer.question for _, answer in long.asked[:7]]


def test_after_a_short_answer_fewer_features_are_asked_for_and_after_a_full_one_more() -> None:
    answers, asked, examples = iter([8, 3, 0, 1, 2, 4, 8, 8]), list[int](), texts(30)

    def compare(questions: list[Compare]) -> Elicited:
        [question], count = questions, next(answers)
        asked.append(question.most)
        names = [Feature(f"trait {letters(10 * len(asked) + place)}") for place in range(count)]
        more = tuple(NamedFeature(name) for name in names[1:])
        verdict = Verdict.FEATURE if names else Verdict.UNREADABLE
        return Elicited([Answer(question, verdict, "me", names[0] if names else None, more=more)])

    strategy = make_strategy("auto", 30, np.random.default_rng(0), most=8)
    label = labelling(Asked(crowd_of(random_truth(30, 10))), examples)
    Loop(strategy, examples, Limits(queries=8, per_question=8), Asker(compare, label)).run()
    assert asked == [8, 8, 6, 3, 2, 4, 8, 8]


def test_what_was_found_is_labelled_before_a_round_that_ends_early_is_over() -> None:
    nothing = np.zeros((30, 4), np.int8)
    run = LiveRuns(Limits(queries=30, labels_after=10, nones=3), nothing)
    assert run.loop.run().stopped is StopReason.NONES
    assert run.kinds == "ccc"

    stopped = LiveRuns(Limits(queries=30, labels_after=10))
    said: list[int] = []

    class StopAfterFour:
        def apply(self, loop: Loop) -> bool:
            said.append(loop.progress.waiting)
            if loop.progress.queries == 4:
                loop.stop()
            return False

    progress = stopped.loop.run(control=StopAfterFour())
    assert stopped.kinds == "ccccl"
    assert said == [1, 2, 3, 4, 0], "it is told after every question, not once a round"
    assert len(progress.findings) == 4
    assert all((finding.labels != UNKNOWN).all() for finding in progress.findings)
