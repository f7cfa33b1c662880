"""What `costs` prints beside the lines of the ledger."""

from __future__ import annotations

from flows.cli.money import saved_by_sharing
from store import Cost


def test_it_says_how_many_requests_were_saved_by_sharing_them() -> None:
    shared = Cost("r", "faces", "openai:m", "label", paid_calls=400, requests=20, paid=1_500_000)
    alone = Cost("r", "faces", "openai:m", "pair", paid_calls=4, requests=5, paid=10_000)
    line = saved_by_sharing([shared, alone])
    assert line == (
        "400 questions shared 20 requests for 1.50 USD; asked one by one they would have taken 380 requests more"
    )
    assert saved_by_sharing([alone]) is None
    assert saved_by_sharing([]) is None
