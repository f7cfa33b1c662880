"""What the command line offers, for tests of the documentation."""

from __future__ import annotations

from cyclopts import App

from twothirds.flows.cli.app import build_app

EVERYWHERE = {"--help", "--json", "--debug"}


def commands() -> list[tuple[str, ...]]:
    """Every command and every action of a command, as words."""
    return [words for name in build_app() if not name.startswith("-") for words in _below((name,))]


def _below(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [words, *((*words, name) for name in _app(words) if not name.startswith("-"))]


def _app(words: tuple[str, ...]) -> App:
    app = build_app()
    for word in words:
        app = app[word]
    return app


def options_of(*words: str) -> set[str]:
    """The options of a command and of all its actions, without those that every command has."""
    apps = [_app(below) for below in _below(words)]
    runs = [app for app in apps if app.default_command]
    names = {name for app in runs for one in app.assemble_argument_collection() for name in one.names}
    negatives = {name for name in names if name.startswith("--no-") and f"--{name[5:]}" in names}
    return {name for name in names if name.startswith("--")} - negatives - EVERYWHERE
