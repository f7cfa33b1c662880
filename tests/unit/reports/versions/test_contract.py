"""What a table must be like, and what is said where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twothirds.discovery.questions import UNKNOWN
from twothirds.reports.run.files import RunError
from twothirds.reports.versions.contract import Contract, schema_of
from twothirds.reports.versions.table import Column, TableSchema, VersionedTable


@pytest.fixture
def table() -> VersionedTable:
    """Of 100 rows 30 are red, 10 have no label for round, and of the last 20 all are red."""
    made = VersionedTable(
        TableSchema(3, (Column("red", "It is red.", 0), Column("round", "", 0))), [str(n) for n in range(100)]
    )
    made.labels[:, 0] = (np.arange(100) >= 80) | (np.arange(100) < 10)
    made.labels[:, 1] = 1
    made.labels[:10, 1] = UNKNOWN
    return made


def violations(table: VersionedTable, new: range = range(0), **contract: Any) -> list[str]:
    return Contract.model_validate(contract).violations(table, new)


def of(**column: Any) -> list[dict[str, Any]]:
    return [{"name": "red"} | column]


def test_the_schema_that_is_written_is_a_contract_that_holds(table: VersionedTable, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema_of(table)), encoding="utf-8")
    assert Contract.read(path).violations(table, range(100)) == []
    red = schema_of(table)["columns"][3]
    assert (red["type"], red["definition"], red["observed"]) == (
        "boolean",
        "It is red.",
        {"share": 0.3, "missing": 0.0},
    )


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        ({"columns": [{"name": "blue"}]}, "blue: there is no such column"),
        ({"columns": of(type="string")}, "red: string is expected, and it is boolean"),
        ({"columns": [{"name": "id", "type": "int64"}]}, "id: int64 is expected, and it is string"),
        ({"columns": of(definition="It is reddish.")}, "red: it is defined otherwise: 'It is red.'"),
        ({"columns": of(share={"max": 0.2})}, "red: 0.3 of 100 rows have it, at most 0.2 is expected"),
        ({"columns": of(share={"min": 0.4})}, "red: 0.3 of 100 rows have it, at least 0.4 is expected"),
        ({"columns": [{"name": "round", "nullable": False}]}, "round: 10 labels are missing, and none may be"),
        (
            {"columns": [{"name": "round", "missing": {"max": 0.05}}]},
            "round: 0.1 of 100 rows have no label, at most 0.05 is expected",
        ),
        ({"columns": of(), "other_columns": False}, "round: no such column is expected"),
        ({"rows": {"min": 200}}, "100 rows, at least 200 are expected"),
        ({"rows": {"max": 50}}, "100 rows, at most 50 are expected"),
    ],
)
def test_what_is_not_as_expected_is_reported_in_a_line(
    table: VersionedTable, contract: dict[str, Any], said: str
) -> None:
    assert violations(table, **contract) == [said]


def test_what_is_as_expected_is_not(table: VersionedTable) -> None:
    wanted = of(type="int8", share={"min": 0.3, "max": 0.3}, missing={"max": 0.0}, nullable=False)
    assert (
        violations(table, columns=[*wanted, {"name": "round"}], rows={"min": 100, "max": 100}, other_columns=False)
        == []
    )


def test_new_rows_are_judged_by_themselves_and_not_by_chance(table: VersionedTable) -> None:
    new = {"share": {"max": 0.5}}
    assert violations(table, range(80, 100), columns=of(new=new)) == [
        "red: 1 of 20 new rows have it, at most 0.5 is expected"
    ]
    assert violations(table, range(98, 100), columns=of(new=new)) == [], "two rows say nothing"
    assert violations(table, range(0), columns=of(new=new)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "invalid json"),
        ('{"column": []}', "column: extra inputs"),
        ('{"columns": [{"name": "red", "share": {"min": 20}}]}', "share.min"),
        ('{"columns": [{"name": "red", "share": {"min": 0.5, "max": 0.2}}]}', "min is above max"),
    ],
)
def test_a_file_that_is_no_contract_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "expect.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=said) as caught:
        Contract.read(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="cannot read"):
        Contract.read(tmp_path / "missing.json")
