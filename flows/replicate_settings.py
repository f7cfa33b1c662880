"""What `replicate` is told; apart from the flow, so that the command line need not wait for Prefect to describe it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_OUT = "docs/replication"


class ReplicateSettings(BaseModel):
    """The same model is the command line and the form in Prefect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quick: bool = Field(False, description="fewer and smaller simulations: two minutes instead of up to an hour")
    out: str = Field(DEFAULT_OUT, description="folder of the page and its plots")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    processes: int = Field(2, ge=1, le=256, description="processes that simulate; the results do not depend on it")

    @property
    def command(self) -> str:
        """What to type to get the same page."""
        options = ["--quick"] if self.quick else []
        return " ".join(["python -m flows replicate", *options, f"--seed {self.seed}"])
