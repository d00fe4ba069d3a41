# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes on which static pods hold the VIPs so far, such as kube-vip, and the way from them to this layout's routers.

The pods serve until everything else is in place. Then they are disabled on all nodes at once, and the routers start:
two programs would hold a VIP if one of the pods were left. Pure.
"""

from __future__ import annotations

from typing import List, Mapping

from ..._agent.config.schema import Faults
from ..._shared.engines import NATIVE, ROUTERS
from ..model.plan import MemberPlan
from .hosts import Member


def faults(members: List[Member], planned: Mapping[str, MemberPlan], prefix: str) -> Faults:
    """Return why a run cannot disable them.

    :param members: as in `planner`
    :param planned: the plan of each member
    :param prefix: of the layout's variables
    """
    disabling = _having(members)
    if not disabling:
        return []
    one = f"{disabling[0]['name']}'s {_programs(disabling[0])}"
    return [
        *(
            f"{member['name']} does not answer, so what holds VIPs there cannot be disabled: repeat the run when "
            "the host answers."
            for member in members
            if member.get("silent")
        ),
        *(
            f"--limit leaves {member['name']} out, on which {_programs(member)} can hold VIPs: run it for all members."
            for member in disabling
            if member.get("outside_limit")
        ),
        *(
            f"{name} gets the agent, and only keepalived can wait until {one} is disabled: set {prefix}_engine to "
            "native, and move to the agent afterwards."
            for name, plan in planned.items()
            if plan.router.instances and plan.engine != NATIVE
        ),
        *(
            f"{name} gets static pods, and only keepalived's unit can wait until {one} is disabled: set "
            f"{prefix}_delivery to unit, and move to pods afterwards."
            for name, plan in planned.items()
            if plan.router.instances and plan.pods
        ),
    ]


def waiting(members: List[Member], planned: Mapping[str, MemberPlan]) -> List[str]:
    """Return the members whose routers start when the pods have gone; one that runs already is left running."""
    if not _having(members):
        return []
    stopped = [each["name"] for each in members if not {*ROUTERS} & {*each["host"].get("active_units", [])}]
    return [name for name in stopped if planned[name].router.instances]


def sentences(members: List[Member]) -> List[str]:
    """Return what a run says of them."""
    return [
        f"{member['name']}: {pod['program']} may currently hold VIPs. At its end this run disables {pod['manifest']}, "
        "and no host holds them until keepalived takes over."
        for member in members
        for pod in member["host"].get("static_pods", [])
    ]


def _having(members: List[Member]) -> List[Member]:
    return [member for member in members if member["host"].get("static_pods")]


def _programs(member: Member) -> str:
    return " and ".join(pod["program"] for pod in member["host"]["static_pods"])
