"""A discovery as it happens, and what people want of it."""

from studio.live.pages import LivePages, LiveRuns
from studio.live.steer_pages import SteerPages
