"""The examples of a run, finished or under way: chosen, searched, sorted, selected and exported."""

from twothirds.studio.browse.pages import BrowsePages
