"""The discover flow, and `discover` from Python."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.discover.flow import Run, discover, discover_flow

__all__ = ["Run", "discover", "discover_flow"]


def __getattr__(name: str) -> Any:
    """Imports Prefect only when a flow is asked for: settings are read without it."""
    if name in __all__:
        from flows.discover import flow

        return getattr(flow, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
