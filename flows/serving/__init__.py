"""The studio: what it serves, and what it starts, with forms made of the settings."""

from flows.serving.app import StudioSettings, owner_link, serve_studio
