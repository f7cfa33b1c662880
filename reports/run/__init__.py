"""The run folder: written whole or not at all, read and checked."""

from twothirds.reports.run.answers import AnsweredComparison, VoteCounts
from twothirds.reports.run.attributes import Attribute, Value, relinked
from twothirds.reports.run.files import (
    RunError,
    TableBusy,
    check_replaceable,
    check_writable,
    locked,
    replace_file,
    replaced_folder,
)
from twothirds.reports.run.findings import (
    COMPLEMENT,
    KNOWN,
    MICRO,
    SAME,
    CorrectedLabel,
    Findings,
    FoundFeature,
    Origin,
    names_of,
    read_findings,
    twins_of,
)
from twothirds.reports.run.folder import (
    CURATION,
    LABELS,
    LIVE,
    STEER,
    RunFolder,
    defuse,
    quoting_of,
    restore,
    write_csv,
    write_run,
)
from twothirds.reports.run.json_parts import JsonPart
from twothirds.reports.run.live import LiveRun
from twothirds.reports.run.reasons import Rationale, read_reasons, write_reasons
from twothirds.reports.run.summary import NAME as RUN_JSON
from twothirds.reports.run.summary import (
    DatasetSummary,
    KnownFeatures,
    OracleSummary,
    PerQuestion,
    RunSummary,
    SameFeatures,
    SkippedExample,
    SteeredBy,
    TargetScore,
    TruthScore,
    Unlabelled,
    doubtful_features,
    public_source,
    without_paths,
)
from twothirds.reports.run.unusable import COMPARISON, LABEL, UnusableAnswers, UnusableCounts
