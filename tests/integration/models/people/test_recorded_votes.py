"""Votes replayed from a table: the right worker, nothing made up, and one line where the table is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from discovery.questions import Kind
from models.oracle import Compare, Feature, Label, OracleError, Question, Verdict
from models.people.recorded_votes import RecordedVotes
from tests.support.made import texts

TABLE = """example,feature,worker,label
e0,hat,ann,1
e0,hat,ben,0
e1,hat,ben,yes
e1,hat,cat,
e0,warm coat,ann,no
"""
EXAMPLES = texts(3)


@pytest.fixture
def votes(tmp_path: Path) -> RecordedVotes:
    path = tmp_path / "votes.csv"
    path.write_text(TABLE, encoding="utf-8")
    return RecordedVotes(path, price=7)


def test_voter_k_is_the_kth_worker_of_that_example_and_feature(votes: RecordedVotes) -> None:
    hat = Feature("hat", "a definition is nobody's business here")
    questions = [Label(hat, EXAMPLES[row], voter) for row in (0, 1) for voter in (0, 1)]
    found = [(answer.by, answer.verdict, answer.cost) for answer in votes.ask(questions)]
    assert found == [
        ("ann", Verdict.YES, 7),
        ("ben", Verdict.NO, 7),
        ("ben", Verdict.YES, 7),
        ("cat", Verdict.REFUSED, 7),
    ]


def test_what_is_not_in_the_table_is_refused_and_free(votes: RecordedVotes) -> None:
    questions: list[Question] = [
        Label(Feature("hat"), EXAMPLES[0], 2),
        Label(Feature("hat"), EXAMPLES[2]),
        Label(Feature("beard"), EXAMPLES[0]),
        Compare(Kind.TWO_OF_THREE, EXAMPLES),
    ]
    for answer in votes.ask(questions):
        assert answer.verdict is Verdict.REFUSED
        assert answer.cost == 0
        assert answer.note


def test_it_knows_its_features_and_how_many_votes_there_are(votes: RecordedVotes) -> None:
    assert votes.features == (Feature("hat"), Feature("warm coat"))
    assert votes.most_votes == 2
    assert votes.estimate([Label(Feature("hat"), EXAMPLES[0])]) == [7]


def test_another_table_is_another_oracle(tmp_path: Path, votes: RecordedVotes) -> None:
    other = tmp_path / "other" / "votes.csv"
    other.parent.mkdir()
    other.write_text(TABLE.replace("e0,hat,ben,0", "e0,hat,ben,1"), encoding="utf-8")
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
    path = tmp_path / "votes.csv"
    path.write_text(table, encoding="utf-8")
    with pytest.raises(OracleError, match=said):
        RecordedVotes(path)


def test_a_missing_or_unreadable_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="cannot be read"):
        RecordedVotes(tmp_path / "nowhere.csv")
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(OracleError, match="no gzip file"):
        RecordedVotes(tmp_path / "broken.csv.gz")
    (tmp_path / "latin.csv").write_bytes("example,feature,worker,label\ne0,Mütze,ann,1\n".encode("latin-1"))
    with pytest.raises(OracleError, match="not UTF-8"):
        RecordedVotes(tmp_path / "latin.csv")
