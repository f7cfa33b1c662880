"""People: the review page is served, and runs wait for their answers."""

from flows.reviewing.page import (
    ADDRESS,
    DEFAULT_ADDRESS,
    PageSettings,
    add_checks,
    export,
    invite,
    resume,
    revoke,
    serve,
    withdraw,
)
from flows.reviewing.suspension import suspended, wait_for_people
