"""Triples and pairs that no known feature tells apart."""

from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.pairs import UnresolvedPairs, count_unresolved
from discovery.unresolved.triples import UnresolvedTriples, all_triples
