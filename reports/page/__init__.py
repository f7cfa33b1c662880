"""The report page of a run."""

from reports.page.browser_data import MIME, cut, script_json, thumbnails
from reports.page.elsewhere import markdown_of, plain_markdown
from reports.page.history import UNGUIDED, lacks_unguided, picture_of
from reports.page.page import BROWSER_SCRIPTS, Page, check_tagging, dataset_of, write_page
