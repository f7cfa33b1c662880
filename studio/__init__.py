"""Pages in the browser: runs to look at, to curate and to correct, and the page on which people answer."""
