"""A discovery while it runs, read from what it writes about itself."""

from reports.live.live_run import LiveRun
