"""What runs: one file per Prefect flow, and the command line (`python -m flows`).

In Python and notebooks: `from flows import discover; run = discover("datasets/faces", oracle="simulated")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.discover import Run, discover

__all__ = ["Run", "discover"]


def __getattr__(name: str) -> Any:
    # Loaded when first used: `python -m flows --help` must not wait for Prefect.
    if name in __all__:
        from flows import discover as module

        return getattr(module, name)
    raise AttributeError(f"module 'flows' has no attribute {name!r}")
