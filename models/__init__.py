"""Oracles, all behind `models.oracle`: a folder for each kind of model or people, and what they share."""

from models.keys import QuestionKeys, kept_key
from models.oracle import (
    MICRO,
    NO_QUESTION,
    NOTHING_MEASURED,
    Answer,
    AnswersPending,
    AnswersUnusable,
    BudgetExhausted,
    Choose,
    Compare,
    ComputesLabels,
    Connects,
    ExampleChanged,
    Feature,
    Forecast,
    Label,
    Measured,
    Money,
    NamedFeature,
    Oracle,
    OracleError,
    OracleIdentity,
    OracleLost,
    OracleUnavailable,
    ProbesServer,
    Question,
    Same,
    ServerAway,
    Unlike,
    Verdict,
    Why,
    check_ahead,
    connect,
    digest_of,
    in_usd,
    rows_save,
    unlike,
)
from models.prices import parse_price, read_prices
from models.recorded import Recorded, reserved_at_once, take_over_probe
from models.voting import Ballot, Elicited, Labelled, Panel, Poll, SheetWriter, computed_ballots, kept_ballots
