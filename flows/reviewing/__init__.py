"""People: the review page is served, and runs wait for their answers."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.reviewing.suspension import suspend, wait_for_people

if TYPE_CHECKING:
    from flows.reviewing.mturk import PRODUCTION, SANDBOX, HitTerms, claim_keys, collect, plan_tasks, publish
    from flows.reviewing.page import (
        ADDRESS,
        DAY,
        DEFAULT_ADDRESS,
        PageSettings,
        add_checks,
        export,
        invite,
        is_running,
        link_of,
        resume,
        revoke,
        serve,
        serve_app,
        withdraw,
    )

PAGE = (
    "ADDRESS DAY DEFAULT_ADDRESS PageSettings add_checks export invite is_running link_of resume revoke serve "
    "serve_app withdraw"
)
MTURK = "HitTerms PRODUCTION SANDBOX claim_keys collect plan_tasks publish"
__getattr__ = on_first_use(__name__, {"page": PAGE, "mturk": MTURK})  # the page imports FastAPI
