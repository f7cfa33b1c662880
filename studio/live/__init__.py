"""A discovery that is under way, and what people wish of it."""

from studio.live.pages import LivePages
