"""A discovery that is watched and steered: what it does as it happens, and what people want of it."""

from flows.discover.live.log import LiveLog
from flows.discover.live.steered_loop import SteeredLoop
from flows.discover.live.steering import Steering, WatchedRest
from flows.discover.live.wishes import AddFeature, AskAbout, Veto, WishProblem, read_wish
