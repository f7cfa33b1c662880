"""The texts of the pages in the languages that browsers can ask for."""

from studio.review.languages.catalogue import CATALOGUES, Catalogue, Moment, language_of
