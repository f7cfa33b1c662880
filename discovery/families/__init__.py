"""Families of features: values of one attribute that exclude one another, or levels of one scale."""

from twothirds.discovery.families.fit import NOT_ASKED, exclusive, fit, levels, open_rows, posterior_of, values_of
from twothirds.discovery.families.search import Candidate, WordGroup, best_family, candidates, groups_by_words
