"""Questions published on Mechanical Turk, and their answers collected."""

from flows.reviewing.mturk.collect import collect
from flows.reviewing.mturk.publish import claim_keys, plan_tasks, publish
from flows.reviewing.mturk.terms import PRODUCTION, SANDBOX, HitTerms
