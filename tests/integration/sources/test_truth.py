"""Reading the truth beside a data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.sources.errors import DatasetError
from twothirds.sources.load import load_dataset


def test_truth_is_aligned_with_the_examples_and_may_know_what_was_set_aside(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\nb,x\nempty,\na,y\n")
    (tmp_path / "truth.csv").write_text("id,big,red one\na,1,\nempty,1,1\nb,0,1\n")
    truth = load_dataset(str(tmp_path / "t.csv")).truth
    assert truth is not None
    assert truth.columns == ("big", "red one")
    assert truth.matrix.tolist() == [[0, 1], [1, -1]]


BAD_TRUTHS = {
    "id,big\na,1\n": "no row for example 'b': add it",
    "id,big\n": "no row for example 'a' and 1 more",
    "id,big\na,1\nb,1\nc,1\n": "id 'c', which the data set lacks",
    "id,big\na,1\na,1\nb,0\n": "two rows for id 'a'",
    "id,big\na,yes\nb,0\n": "'yes' for 'big' of id 'a': write 0, 1",
    "id,big\na\nb,0\n": "row 1",
    "name,big\na,1\n": "no column 'id'",
    "id\na\nb\n": "must name every feature",
    "id,\na,1\nb,1\n": "must name every feature",
    "": "is empty",
}


@pytest.mark.parametrize("content", BAD_TRUTHS)
def test_truth_that_does_not_fit_is_reported_on_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text("id,text\na,x\nb,y\n")
    (tmp_path / "truth.csv").write_text(content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(str(tmp_path / "t.csv"))
    assert BAD_TRUTHS[content] in str(caught.value)
    assert "truth.csv" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
