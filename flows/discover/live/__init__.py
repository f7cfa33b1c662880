"""A discovery that is watched and steered: what it does as it happens, and what people want of it."""

from flows.discover.live.commands import AddFeature, AskAbout, CommandProblem, Veto, read_command
from flows.discover.live.log import LiveLog
from flows.discover.live.steered_loop import SteeredLoop
from flows.discover.live.steering import Steering, WatchedRemaining
