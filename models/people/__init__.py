"""People, simulated crowds, recorded votes, and crowds of several oracles."""

from models.people.human import HumanOracle, HumanTerms, WaitingOracle, check_of
from models.people.mixed import MixedCrowd, Mixture, PeopleAsked, RecordedCrowd, recorded_by
from models.people.recorded_votes import RecordedVotes
from models.people.simulated import Behaviour, FreeCrowd, SimulatedOracle
