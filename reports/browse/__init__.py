"""Examples chosen by features, by marks of their labels and by the data set's own columns; sorted, searched, alike."""

from twothirds.reports.browse.catalogue import BrowseChoice, ExampleCatalogue, Vectors, scores_of
from twothirds.reports.browse.columns import BrowsedColumn, browsed_columns
