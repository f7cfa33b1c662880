"""The studio: runs to look at, to curate and to correct in the browser, beside the page on which people answer."""

from twothirds.studio.app import create_studio
from twothirds.studio.config import (
    METRICS_PASSWORD,
    CurationCommand,
    CurationStep,
    EditRefused,
    FormField,
    OracleForm,
    Starter,
    StartPlan,
    StudioConfig,
)
