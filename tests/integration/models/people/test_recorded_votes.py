"""Votes and comparisons replayed from tables: the right answer, nothing made up, one line where a table is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.asking import ask, bounds
from tests.support.made import texts
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label, OracleError, Question, Verdict
from twothirds.models.people.recorded_votes import RecordedVotes

TABLE = """example,feature,worker,label
e0,hat,ann,1
e0,hat,ben,0
e1,hat,ben,yes
e1,hat,cat,
e0,warm coat,ann,no
"""
COMPARISONS = """question,left,right,answer,definition,worker
left-right,e0|e1,e2 | e3,hat,on the head,ann
left-right,e1|e0,e2|e3,cap,,ben
two-of-three,e0|e2,e1,beard,,
two-of-three,e1|e2|e3,,,,cat
pair,e4,e0,scarf,,
groups,e0|e1,e3|e4,coat,,
tag,e4,,boots,,
"""
E = texts(5)


def table_of(folder: Path, content: str, name: str = "comparisons.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def votes(tmp_path: Path) -> RecordedVotes:
    return RecordedVotes(table_of(tmp_path, TABLE, "votes.csv"), price=7)


def test_voter_k_is_the_kth_worker_of_that_example_and_feature(votes: RecordedVotes) -> None:
    hat = Feature("hat", "a definition is nobody's business here")
    questions = [Label(hat, E[row], voter) for row in (0, 1) for voter in (0, 1)]
    found = [(answer.by, answer.verdict, answer.cost) for answer in ask(votes, questions)]
    assert found == [
        ("ann", Verdict.YES, 7),
        ("ben", Verdict.NO, 7),
        ("ben", Verdict.YES, 7),
        ("cat", Verdict.REFUSED, 7),
    ]


def test_what_is_not_in_the_table_is_refused_and_free(votes: RecordedVotes) -> None:
    questions: list[Question] = [
        Label(Feature("hat"), E[0], 2),
        Label(Feature("hat"), E[2]),
        Label(Feature("beard"), E[0]),
        Compare(Kind.TWO_OF_THREE, E[:3]),
    ]
    for answer in ask(votes, questions):
        assert answer.verdict is Verdict.REFUSED
        assert answer.cost == 0
        assert answer.note


def test_it_knows_its_features_and_how_many_votes_there_are(votes: RecordedVotes) -> None:
    assert votes.features == (Feature("hat"), Feature("warm coat"))
    assert votes.most_votes == 2
    assert bounds(votes, [Label(Feature("hat"), E[0])]) == [7]


def test_another_table_is_another_oracle(tmp_path: Path, votes: RecordedVotes) -> None:
    other = table_of(tmp_path, TABLE.replace("e0,hat,ben,0", "e0,hat,ben,1"), "other.csv")
    assert RecordedVotes(other).identity != votes.identity
    packed = tmp_path / "votes.csv.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    assert RecordedVotes(packed).identity.parameters == votes.identity.parameters


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("example,worker,label\ne0,ann,1\n", "no column 'feature'"),
        (TABLE + "e0,hat,ann,1\n", "line 7: 'ann' labelled 'e0' with 'hat' twice"),
        (TABLE + "e2,hat,ann,maybe\n", "line 7: label 'maybe'"),
        (TABLE + "e2,,ann,1\n", "line 7: example, feature and worker must not be empty"),
        ("", "no column 'example'"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(OracleError, match=said):
        RecordedVotes(table_of(tmp_path, table, "votes.csv"))


def test_a_missing_or_unreadable_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="cannot be read"):
        RecordedVotes(tmp_path / "nowhere.csv")
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(OracleError, match="no gzip file"):
        RecordedVotes(tmp_path / "broken.csv.gz")
    (tmp_path / "latin.csv").write_bytes("example,feature,worker,label\ne0,Mütze,ann,1\n".encode("latin-1"))
    with pytest.raises(OracleError, match="not UTF-8"):
        RecordedVotes(tmp_path / "latin.csv")


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedVotes:
    votes = table_of(tmp_path, TABLE, "votes.csv")
    return RecordedVotes(votes, comparisons=table_of(tmp_path, COMPARISONS), price=7)


def test_the_answer_is_that_of_the_table_whatever_the_order_of_the_examples(recorded: RecordedVotes) -> None:
    asked = [
        Compare(Kind.LEFT_RIGHT, (E[1], E[0]), (E[3], E[2])),
        Compare(Kind.LEFT_RIGHT, (E[0], E[1]), (E[2], E[3]), voter=1),
        Compare(Kind.TWO_OF_THREE, (E[2], E[1], E[0])),
        Compare(Kind.TWO_OF_THREE, (E[3], E[2], E[1])),
        Compare(Kind.PAIR, (E[0], E[4])),
        Compare(Kind.GROUPS, (E[0], E[1]), (E[3], E[4])),
        Compare(Kind.TAG, (E[4],)),
    ]
    found = [(one.verdict, one.feature, one.shown, one.by, one.cost) for one in ask(recorded, asked)]
    assert found == [
        (Verdict.FEATURE, Feature("hat", "on the head"), (0, 1), "ann", 7),
        (Verdict.FEATURE, Feature("cap"), (0, 1), "ben", 7),
        (Verdict.FEATURE, Feature("beard"), (0, 2), "somebody", 7),
        (Verdict.NONE, None, (), "cat", 7),
        (Verdict.FEATURE, Feature("scarf"), (1,), "somebody", 7),
        (Verdict.FEATURE, Feature("coat"), (0, 1), "somebody", 7),
        (Verdict.FEATURE, Feature("boots"), (0,), "somebody", 7),
    ]


def test_a_comparison_that_is_not_in_the_table_is_refused_and_free(recorded: RecordedVotes) -> None:
    asked = [
        Compare(Kind.LEFT_RIGHT, (E[2], E[3]), (E[0], E[1])),  # the sides the other way round
        Compare(Kind.LEFT_RIGHT, (E[0], E[1]), (E[2], E[3]), voter=2),
        Compare(Kind.ONE_OF_THREE, (E[0], E[1], E[2])),  # the same three, another question
    ]
    for answer in ask(recorded, asked):
        assert (answer.verdict, answer.cost) == (Verdict.REFUSED, 0)
        assert answer.note == "not in the table of recorded comparisons"


def test_its_questions_are_those_about_the_given_examples_each_once(recorded: RecordedVotes) -> None:
    assert [(one.kind, len(one.examples), len(one.without)) for one in recorded.comparisons.questions(E)] == [
        (Kind.LEFT_RIGHT, 2, 2),
        (Kind.TWO_OF_THREE, 3, 0),
        (Kind.TWO_OF_THREE, 3, 0),
        (Kind.PAIR, 2, 0),
        (Kind.GROUPS, 2, 2),
        (Kind.TAG, 1, 0),
    ]
    assert [one.kind for one in recorded.comparisons.questions(E[:3])] == [Kind.TWO_OF_THREE]


def test_a_question_does_not_tell_its_answer_by_the_order(recorded: RecordedVotes) -> None:
    beard = recorded.comparisons.questions(E)[1]
    assert [example.id for example in beard.examples] == ["e0", "e1", "e2"]  # the table has e0 and e2 first


def test_a_table_of_comparisons_may_come_alone(tmp_path: Path) -> None:
    alone = RecordedVotes(table_of(tmp_path, COMPARISONS))
    assert alone.features == ()
    assert len(alone.comparisons) == 6
    (label,) = ask(alone, [Label(Feature("hat"), E[0])])
    assert label.verdict is Verdict.REFUSED


def test_votes_alone_are_the_oracle_that_they_were(tmp_path: Path) -> None:
    """Answers that are kept under it stay valid."""
    votes = table_of(tmp_path, TABLE, "votes.csv")
    assert [name for name, _ in RecordedVotes(votes).identity.parameters] == ["votes"]
    both = RecordedVotes(votes, comparisons=table_of(tmp_path, COMPARISONS)).identity
    other = RecordedVotes(
        votes, comparisons=table_of(tmp_path, COMPARISONS.replace("cap", "hood"), "other.csv")
    ).identity
    assert len({RecordedVotes(votes).identity, both, other}) == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("guess,e0,e1,hat,,", "line 9: question 'guess': write one of two-of-three"),
        ("two-of-three,e0,e1,hat,,", "line 9: a two-of-three question has 2 in left and 1 in right, not 1 and 1"),
        ("shared,e0,e1|e2,hat,,", "line 9: a shared question has 2 in left and 1 in right, not 1 and 2"),
        ("one-or-two,e0,e1,hat,,", "line 9: a one-or-two question has 1 to 2 in left and the others in right, not 1"),
        ("left-right,e0,,hat,,", "line 9: a left-right question needs examples in left and in right"),
        ("pair,e0 e1,,hat,,", "line 9: a pair question has 1 in left and 1 in right, not 1 and 0: separate"),
    ],
)
def test_a_wrong_line_of_comparisons_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(OracleError, match=said):
        RecordedVotes(table_of(tmp_path, COMPARISONS + line + "\n"))


def test_a_second_table_that_is_none_is_one_line(tmp_path: Path) -> None:
    votes = table_of(tmp_path, TABLE, "votes.csv")
    with pytest.raises(OracleError, match="has no column 'question': its first line must be question, left, right"):
        RecordedVotes(votes, comparisons=votes)
