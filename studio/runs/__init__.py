"""The runs below the folders that the studio serves: listed, shown, changed, corrected, compared, with their cost."""

from twothirds.studio.runs.correct_pages import CorrectPages, votes_on
from twothirds.studio.runs.cost_pages import CostPages
from twothirds.studio.runs.feature_pages import FeaturePages
from twothirds.studio.runs.place import Place, finished_place, unfinished_place
from twothirds.studio.runs.run_pages import RunPages
