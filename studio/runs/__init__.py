"""The runs below the folders that the studio serves: found, listed, shown, changed and corrected."""

from studio.runs.correct_pages import CorrectPages
from studio.runs.live_run import LiveRun
from studio.runs.run_pages import Key, Row, RunPages, picture_response
from studio.runs.shelf import Shelf, key_of
