"""Who may do what in the studio: its owner everything, editors all that concerns runs, reviewers only the review.

The owner is an administrator of the review; an editor is a reviewer to whom runs are open too."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from starlette.exceptions import HTTPException

from store.review import ADMIN, REVIEWER, Person, Queue
from studio.review import for_role

OWNER, EDITOR = ADMIN, "editor"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Roles:
    def __init__(self, queue: Queue) -> None:
        self._people = queue.people

    def make_editor(self, person: Person) -> None:
        self._people.make_editor(person.id)

    def of(self, person: Person) -> str:
        return EDITOR if person.role == REVIEWER and person.is_editor else person.role


class _HasRoles(Protocol):
    roles: Roles


def for_staff(endpoint: Endpoint) -> Endpoint:
    """An endpoint for the owner and for editors, of pages that know the roles."""

    @wraps(endpoint)
    def checked(pages: _HasRoles, *arguments: Any, **named: Any) -> Any:
        if pages.roles.of(named["visitor"].who) not in (OWNER, EDITOR):
            raise HTTPException(403, "Your link does not open this page.")
        return endpoint(pages, *arguments, **named)

    return cast("Endpoint", for_role(OWNER, REVIEWER)(checked))
