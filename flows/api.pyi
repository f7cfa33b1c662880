# Written by `python -m tests.support.api_stub` from the settings.

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from twothirds.flows.estimate import Estimate
from twothirds.reports import Run as Run
from twothirds.reports.page import Page

Data = str | Path | pd.DataFrame | Any  # an Arrow table or a HuggingFace Dataset too

def attributes(
    run: Run | Path | str,
    *,
    yes: bool = ...,
    budget: Decimal | float | str | float | str | None = ...,
    dataset: str | None = ...,
    store: str | None = ...,
) -> Any: ...
def compare(
    dataset: Data,
    *,
    id_column: str | None = ...,
    text_column: str | None = ...,
    image_column: str | None = ...,
    seed: int = ...,
    budget: Decimal | float | str | None = ...,
    store: str | None = ...,
    retry_unusable: bool = ...,
    oracles: tuple[str, ...],
    features: str | Path | Run | None = ...,
    people: str | None = ...,
    annotators: Literal["expert", "skilled", "crowd"] = ...,
    votes: str = ...,
    sample: int | None = ...,
    people_sample: int | None = ...,
    comparisons: int = ...,
    own_discovery: bool = ...,
    queries: int = ...,
    accuracy: float = ...,
    draws: int = ...,
    out: str | Path | None = ...,
    replace: bool = ...,
    yes: bool = ...,
) -> dict[str, Any]: ...
def costs(run: Path | str | None = ..., *, store: str | None = ...) -> pd.DataFrame: ...
def discover(
    dataset: Data,
    *,
    id_column: str | None = ...,
    text_column: str | None = ...,
    image_column: str | None = ...,
    seed: int = ...,
    budget: Decimal | float | str | None = ...,
    store: str | None = ...,
    retry_unusable: bool = ...,
    oracle: str,
    about: str | Path = ...,
    votes: int = ...,
    per: Literal["day", "week", "month"] | None = ...,
    agree: float | None = ...,
    uncertified: Literal["ask", "leave"] = ...,
    embedder: str | None = ...,
    cheap: str | None = ...,
    strategy: Literal["auto", "adaptive-triple", "random-triple", "adaptive-pair", "adaptive-hybrid", "tagging"] = ...,
    queries: int | None = ...,
    voters: int = ...,
    ask_same: bool | None = ...,
    rare: float = ...,
    target_g: float | None = ...,
    nones: int | None = ...,
    beyond: bool | None = ...,
    theta: int | None = ...,
    degree: int | None = ...,
    delta: float | None = ...,
    avoid: str = ...,
    known: str | Path | Run | None = ...,
    exclude: str | Path | None = ...,
    exemplars: int = ...,
    target: str | None = ...,
    between: str | None = ...,
    hold_out_by: str | None = ...,
    unguided: bool = ...,
    elicit_on: int | None = ...,
    label_rest: bool = ...,
    provider_batch: bool = ...,
    labeller: str | None = ...,
    escalate: float | None = ...,
    spot_check: float | None = ...,
    people: str = ...,
    wait: bool = ...,
    out: str | Path | None = ...,
    replace: bool = ...,
    yes: bool = ...,
) -> Run: ...
def enrich(
    dataset: Data,
    *,
    id_column: str | None = ...,
    text_column: str | None = ...,
    image_column: str | None = ...,
    seed: int = ...,
    budget: Decimal | float | str | None = ...,
    store: str | None = ...,
    retry_unusable: bool = ...,
    oracle: str,
    about: str | Path = ...,
    votes: int = ...,
    per: Literal["day", "week", "month"] | None = ...,
    agree: float | None = ...,
    uncertified: Literal["ask", "leave"] = ...,
    embedder: str | None = ...,
    cheap: str | None = ...,
    features: str | Path | Run,
    exemplars: int = ...,
    backfill: bool = ...,
    drop_gone: bool = ...,
    expect: str | None = ...,
    delta: float = ...,
    propose: int | None = ...,
    runner: Literal["threads", "dask", "ray"] = ...,
    workers: int = ...,
    cluster: str | None = ...,
    out: str | Path | None = ...,
    yes: bool = ...,
) -> dict[str, Any]: ...
def estimate(command: Callable[..., Any], subject: Any, **settings: Any) -> Estimate: ...
def export(
    run: Run | Path | str,
    formats: Sequence[str] = ...,
    *,
    only: Sequence[str] = ...,
    without: Sequence[str] = ...,
    with_: Sequence[str] = ...,
    out: Path | str | None = ...,
    dataset: str | None = ...,
) -> list[Path]: ...
def features(
    run: Run | Path | str,
    action: str = ...,
    *names: str,
    into: str | None = ...,
    definitions: Sequence[str] = ...,
    keep: bool = ...,
    ask: bool = ...,
    yes: bool = ...,
    budget: Decimal | float | str | float | str | None = ...,
    dataset: str | None = ...,
    store: str | None = ...,
) -> Any: ...
def labels(
    run: Run | Path | str, action: str = ..., *words: str, by: str | None = ..., dataset: str | None = ...
) -> Any: ...
def rationale(
    run: Run | Path | str,
    *,
    labels: Literal["doubtful", "disputed"] = ...,
    limit: int = ...,
    yes: bool = ...,
    budget: Decimal | float | str | float | str | None = ...,
    dataset: str | None = ...,
    store: str | None = ...,
) -> Any: ...
def report(
    run: Run | Path | str,
    *,
    target: str | None = ...,
    by: str | None = ...,
    against: Run | Path | str | None = ...,
    tagging: Run | Path | str | None = ...,
    budget: Decimal | float | str | float | str | None = ...,
    dataset: str | None = ...,
    out: Path | str | None = ...,
    plain: bool = ...,
) -> Page: ...
def tree(run: Run | Path | str, *, tolerance: float = ..., support: int = ...) -> str: ...
