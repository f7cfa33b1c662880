"""People, simulated crowds and recorded votes."""

from twothirds.models.people.human import HumanOracle, HumanTerms, check_of
from twothirds.models.people.recorded_votes import RecordedVotes
from twothirds.models.people.simulated import Behaviour, SimulatedOracle
