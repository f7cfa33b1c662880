"""The seam between the loop and all that can answer: questions in, answers out, each with its cost."""

from __future__ import annotations

from models.oracle.answers import UNUSABLE, USABLE, Answer, NamedFeature, Usage, Verdict
from models.oracle.errors import (
    AnswersPending,
    AnswersUnusable,
    BudgetExhausted,
    ExampleChanged,
    Halted,
    OracleError,
    OracleLost,
    OracleUnavailable,
    ServerAway,
    changes_raised,
    free_of_charge,
)
from models.oracle.money import MICRO, NOTHING_MEASURED, Forecast, Measured, Money, in_usd
from models.oracle.protocol import (
    LATENCIES,
    AsksAnew,
    Chances,
    ComputedVotes,
    ComputesLabels,
    Connects,
    Leaving,
    LoadsModel,
    NoteBatch,
    Oracle,
    OracleIdentity,
    PlannedRequest,
    ProbesServer,
    TellsRequests,
    TellsTraffic,
    Traffic,
    Unlike,
    check_ahead,
    connect,
    rows_save,
    unlike,
)
from models.oracle.questions import (
    MOST_EXEMPLARS,
    NO_QUESTION,
    SEVERAL,
    Choose,
    Compare,
    Exemplar,
    Family,
    Feature,
    Label,
    Question,
    Same,
    Single,
    Why,
    canonical_json,
    digest_of,
    digest_of_content,
    examples_of,
    exemplars_of,
    in_turn,
)
