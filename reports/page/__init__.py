"""The report page of a run."""

from reports.page.aim import UNGUIDED, lacks_unguided
from reports.page.browser_data import MIME, cut, script_json, thumbnails
from reports.page.elsewhere import markdown_of
from reports.page.history import picture_of
from reports.page.page import BROWSER_SCRIPTS, Page, dataset_of, write_page
from reports.page.sections import check_tagging
