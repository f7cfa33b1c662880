"""Families of features: values of one attribute that exclude one another, or levels of one scale."""

from discovery.families.words import WordGroup, groups_by_words
