"""Oracles, all behind `models.oracle`: a folder for each kind of model or people, and what they share."""

from models.keys import kept_key
from models.oracle import (
    MICRO,
    NO_QUESTION,
    Answer,
    AnswersPending,
    AnswersUnusable,
    BudgetExhausted,
    Compare,
    Connects,
    ExampleChanged,
    Feature,
    Label,
    Money,
    Oracle,
    OracleError,
    OracleIdentity,
    OracleLost,
    OracleUnavailable,
    ProbesServer,
    Question,
    ServerAway,
    Verdict,
    check_ahead,
    connect,
    digest_of,
    in_usd,
)
from models.prices import parse_price, read_prices
from models.recorded import Recorded, take_over_probe
from models.voting import Ballot, Elicited, Labelled, Panel, Poll, SheetWriter
