"""What `costs` prints beside the lines of the ledger."""

from __future__ import annotations

import pytest

from twothirds.flows.cli.money import _print_costs, saved_by_sharing
from twothirds.store import Cost


def test_it_says_how_many_requests_were_saved_by_sharing_them() -> None:
    shared = Cost("r", "faces", "openai:m", "label", paid_calls=400, requests=20, paid=1_500_000)
    alone = Cost("r", "faces", "openai:m", "pair", paid_calls=4, requests=5, paid=10_000)
    line = saved_by_sharing([shared, alone])
    assert line == (
        "400 questions shared 20 requests for 1.5000 USD; asked one by one they would have taken 380 requests more"
    )
    assert saved_by_sharing([alone]) is None
    assert saved_by_sharing([]) is None


def test_a_sum_is_rounded_in_one_way_and_free_labels_are_not_called_paid(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    free = Cost("r", "faces", "contrastive", "label", paid_calls=400, questions=400)
    shared = Cost(
        "r", "faces", "openai:m", "label", paid_calls=4, requests=2, paid=123_449, unknown_calls=1, unknown=7001
    )
    _print_costs([free, shared])
    heading, printed = capsys.readouterr().out.split("\n", 2)[1:]
    assert "asked" in heading
    assert " paid " not in heading
    assert printed.count("0.1234") == 3  # the line, the total, and what was shared
    assert "0.12 " not in printed
    assert printed.count("0.0071") == 3
    assert "0.007001" not in printed
