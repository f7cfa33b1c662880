"""Crowds that know the true features, and attributes with values as they see them."""

from twothirds.discovery.simulation.attributes import TrueAttribute, attribute_among, true_attributes, true_scale
from twothirds.discovery.simulation.crowds import CROWDS, Crowd, Matrix, RankedCrowd, WeightedCrowd, make_crowd
