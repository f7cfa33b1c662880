"""The discover flow, and `discover` from Python."""

from flows.discover.flow import Run, discover, discover_flow

__all__ = ["Run", "discover", "discover_flow"]
