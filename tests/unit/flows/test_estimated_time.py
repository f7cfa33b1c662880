"""Where money is nothing an estimate tells the time, once it is known how fast the server is."""

from __future__ import annotations

from twothirds.flows.estimate import Estimate


def test_a_time_is_told_where_money_is_nothing_and_the_speed_is_known() -> None:
    known = Estimate("zoo", "openai:local", 100, questions=200, most_questions=250, seconds=4_000)
    assert known.lines() == [
        "zoo (100 examples) with openai:local: up to 250 calls, free of charge; 0 answers are stored already",
        "that takes about 1 h 6 min, as fast as the server was last",
    ]
    assert known.to_json()["seconds_about"] == 4_000
    assert (known + known).seconds == 8_000
    unknown = Estimate("zoo", "openai:local", 100, questions=200, most_questions=250)
    assert len(unknown.lines()) == 1
    assert "seconds_about" not in unknown.to_json()


def test_what_is_stored_takes_no_time() -> None:
    half = Estimate(questions=200, most_questions=250, seconds=600, stored=100)
    assert half.lines()[-1] == "that takes about 5 min 0 s, as fast as the server was last"
