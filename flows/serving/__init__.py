"""The studio: what it serves, and what it starts, with forms made of the settings; and commands for what runs."""

from flows.serving.app import StudioSettings, owner_link, serve_studio
from flows.serving.steer import enter_command
