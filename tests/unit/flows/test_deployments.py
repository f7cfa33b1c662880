"""prefect.yaml: every deployment names a flow that is there, with settings that the flow accepts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
import yaml
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import get_current_settings

from twothirds.flows.endings import BUDGET, ENDINGS

ROOT = Path(__file__).parents[3]
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
NAMES = [deployment["name"] for deployment in DEPLOYMENTS]


def test_the_automations_are_those_that_prefect_reads_and_name_our_event() -> None:
    text = (ROOT / "automations.yaml").read_text(encoding="utf-8").replace("BLOCK_ID", str(uuid4()))
    read = [AutomationCore.model_validate(one) for one in yaml.safe_load(text)["automations"]]
    assert [one.name.removeprefix("twothirds: ") for one in read] == [
        *("a run failed", "a killed run becomes Crashed", "a budget is used up", "the share of a feature has moved"),
        *("answers are refused", "no success for a day"),
    ]
    failures = {f"prefect.flow-run.{one.name}" for one in ENDINGS if one.type == "FAILED"}
    assert isinstance(read[0].trigger, EventTrigger)
    assert read[0].trigger.expect == failures | {"prefect.flow-run.Crashed", "prefect.flow-run.TimedOut"}
    assert isinstance(read[2].trigger, EventTrigger)
    assert read[2].trigger.expect == {BUDGET.event}


def test_a_run_that_sends_no_heartbeat_for_several_times_their_distance_becomes_crashed() -> None:
    text = (ROOT / "automations.yaml").read_text(encoding="utf-8").replace("BLOCK_ID", str(uuid4()))
    [read] = [
        AutomationCore.model_validate(one) for one in yaml.safe_load(text)["automations"] if "killed" in one["name"]
    ]
    trigger, [action] = read.trigger, read.actions
    assert isinstance(trigger, EventTrigger)
    assert (trigger.posture, trigger.after) == (Posture.Proactive, {"prefect.flow-run.heartbeat"})
    assert trigger.for_each == {"prefect.resource.id"}, "a run that lives does not speak for one that does not"
    between = type(get_current_settings().flows).model_fields["heartbeat_frequency"].default
    assert trigger.within >= timedelta(seconds=4 * between)
    assert isinstance(action, ChangeFlowRunState)
    assert action.state == StateType.CRASHED


def test_there_is_a_deployment_for_each_kind_of_work() -> None:
    assert {"discover", "enrich", "compare", "propose"} <= set(NAMES)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_parameters_are_accepted_by_the_flow(deployment: dict[str, Any]) -> None:
    flow: Any = load_flow_from_entrypoint(deployment["entrypoint"])
    assert flow.validate_parameters(deployment["parameters"])
    assert not {"api_key", "token", "password"} & set(str(deployment["parameters"]).lower().split())


@pytest.mark.parametrize("deployment", [one for one in DEPLOYMENTS if "schedules" in one], ids=lambda one: one["name"])
def test_schedules_have_a_slug_a_time_zone_and_one_run_at_a_time(deployment: dict[str, Any]) -> None:
    for schedule in deployment["schedules"]:
        assert schedule["slug"]
        assert ZoneInfo(schedule["timezone"])
        assert len(schedule["cron"].split()) == 5
    assert deployment["concurrency_limit"]["limit"] == 1
