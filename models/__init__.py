"""Oracles, all behind `twothirds.models.oracle`: a folder for each kind of model or people, and what they share."""

from twothirds.models.cached import CachedOracle, reserved_at_once
from twothirds.models.crowd import (
    KNOWN,
    Asks,
    Crowd,
    KnownLabelsOf,
    Members,
    Review,
    ReviewCounts,
    build_crowd,
)
from twothirds.models.keys import QuestionKeys, stored_key
from twothirds.models.labelling import (
    LABELS_AT_ONCE,
    Elicited,
    LabelBatch,
    Votes,
    batches_of,
    collect_answers,
    collect_votes,
)
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    LATENCIES,
    MICRO,
    MOST_EXEMPLARS,
    NO_QUESTION,
    SEVERAL,
    Answer,
    AnswersPending,
    AnswersUnusable,
    BudgetExhausted,
    Choose,
    Compare,
    ComputedVotes,
    ComputingOracle,
    ExampleChanged,
    Family,
    Feature,
    Halted,
    Label,
    Money,
    NamedFeature,
    Oracle,
    OracleError,
    OracleIdentity,
    OracleLost,
    OracleUnavailable,
    Overcharged,
    Question,
    Reply,
    Request,
    Same,
    ServerAway,
    Traffic,
    Traits,
    Unlike,
    Verdict,
    Why,
    digest_of,
    exemplars_of,
    in_turn,
    in_usd,
)
from twothirds.models.prices import MAX_PRICE_USD, parse_price, read_prices
from twothirds.models.sentences import sentence_closeness
