"""The examples of a run, finished or under way: chosen, searched, sorted, selected and exported."""

from studio.browse.pages import BrowsePages
