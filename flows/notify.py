"""Automations that tell people by a notification block when a run fails or its budget is used up."""

from __future__ import annotations

from typing import Any

from prefect.automations import Automation
from prefect.blocks.core import Block
from prefect.events.actions import SendNotification
from prefect.events.schemas.automations import EventTrigger, Posture

from flows.cli.options import UsageError
from tasks.publish import BUDGET_EVENT

RUN_BODY = "{{ flow_run.name }} of {{ flow.name }} is {{ flow_run.state.name }}: {{ flow_run.state.message }}"
BUDGET_BODY = "{{ event.resource.name }}: {{ event.payload.message }}"


def notify(block: str) -> list[str]:
    """Create the automations, or take over those that are there; returns their names. `block` is TYPE/NAME."""
    try:
        loaded: Any = Block.load(block)
    except ValueError as error:
        raise UsageError(
            f"there is no notification block {block!r} ({' '.join(str(error).split())}): save one, see docs/deploy.md"
        ) from None
    made = []
    for automation in _automations(loaded._block_document_id):
        _replace(automation)
        made.append(automation.name)
    return made


def _automations(block_id: Any) -> list[Automation]:
    def told(subject: str, body: str) -> SendNotification:
        return SendNotification(block_document_id=block_id, subject=subject, body=body)

    ours = {"prefect.resource.id": "prefect.tag.twothirds", "prefect.resource.role": "tag"}
    return [
        Automation(
            name="twothirds: a run failed",
            trigger=EventTrigger(
                expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed", "prefect.flow-run.TimedOut"},
                match={"prefect.resource.id": "prefect.flow-run.*"},
                match_related=ours,
                posture=Posture.Reactive,
                threshold=1,
            ),
            actions=[told("twothirds: a run failed", RUN_BODY)],
        ),
        Automation(
            name="twothirds: a budget is used up",
            trigger=EventTrigger(
                expect={BUDGET_EVENT},
                match={"prefect.resource.id": "twothirds.dataset.*"},
                posture=Posture.Reactive,
                threshold=1,
            ),
            actions=[told("twothirds: a budget is used up", BUDGET_BODY)],
        ),
    ]


def _replace(automation: Automation) -> None:
    try:
        known: Any = Automation.read(name=automation.name)
    except ValueError:
        automation.create()
        return
    automation.id = known.id
    automation.update()
