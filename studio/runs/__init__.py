"""The runs below the folders that the studio serves: listed, shown, changed, corrected, compared, with their cost."""

from studio.runs.correct_pages import CorrectPages, votes_on
from studio.runs.cost_pages import CostPages
from studio.runs.run_pages import RunPages
