"""Crowds and worlds of the paper, and discoveries in memory."""

from discovery.simulation.attributes import TrueAttribute, attribute_among, true_attributes, true_scale
from discovery.simulation.crowds import CROWDS, Crowd, Matrix, RankedCrowd, WeightedCrowd, make_crowd, valid_columns
from discovery.simulation.errors import VoteErrors, neighbours
from discovery.simulation.rehearsal import rehearse
from discovery.simulation.worlds import (
    BINARY_SHAPES,
    SKEWED,
    World,
    binary_tree,
    independent_features,
    leafy_tree,
    left_right_world,
    skewed_world,
)
