"""The report page of a run."""

from twothirds.reports.page.browser_data import MIME, cut, script_json, thumbnails
from twothirds.reports.page.elsewhere import markdown_of, plain_markdown
from twothirds.reports.page.history import UNGUIDED, lacks_unguided, picture_of
from twothirds.reports.page.page import BROWSER_SCRIPTS, Page, check_tagging, dataset_of, write_page
