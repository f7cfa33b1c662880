"""The report page of a run."""

from twothirds.reports.page.browser_data import MIME, cut, script_json, thumbnails
from twothirds.reports.page.correlations import heat_map, ordered, related, strongest
from twothirds.reports.page.elsewhere import markdown_of, plain_markdown
from twothirds.reports.page.feature_cards import ASKED_FOR, card_example, detailed, outlined
from twothirds.reports.page.history import UNGUIDED, curves_of, history_of, lacks_unguided, picture_of
from twothirds.reports.page.page import BROWSER_SCRIPTS, STOPPED, Page, check_tagging, dataset_of, write_page
