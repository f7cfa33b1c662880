"""The run folder: written whole or not at all, read and checked."""

from reports.run.answers import AnsweredComparison, VoteCounts
from reports.run.attributes import Attribute, Value, relinked
from reports.run.files import (
    RunError,
    TableBusy,
    check_replaceable,
    check_writable,
    locked,
    replace_file,
    replaced_folder,
)
from reports.run.findings import (
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
from reports.run.folder import (
    CURATION,
    LIVE,
    PREDICTED,
    STEER,
    RunFolder,
    defuse,
    quoting_of,
    restore,
    write_csv,
    write_run,
)
from reports.run.json_parts import JsonPart
from reports.run.live import LiveRun
from reports.run.reasons import Rationale, read_reasons, write_reasons
from reports.run.summary import NAME as RUN_JSON
from reports.run.summary import (
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
from reports.run.unusable import COMPARISON, LABEL, UnusableAnswers, UnusableCounts
