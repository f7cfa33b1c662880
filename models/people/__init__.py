"""People, simulated crowds, recorded votes, and crowds of several oracles."""

from twothirds.models.people.human import HumanOracle, HumanTerms, WaitingOracle, check_of
from twothirds.models.people.mixed import MixedCrowd, Mixture, PeopleAsked, RecordedCrowd, recorded_by
from twothirds.models.people.recorded_votes import RecordedVotes
from twothirds.models.people.simulated import Behaviour, FreeCrowd, SimulatedOracle
