# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which members return to their settings of before unless the run is proved, and which of them first. Pure.

What each member then does by itself is decided by `_host/states/undoing`.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from ..._shared.engines import ROUTERS
from ..model.plan import MemberPlan, Undo
from .transition import Way


def undo(
    members: Sequence[Dict[str, Any]], planned: Mapping[str, MemberPlan], way: Way, held: Mapping[str, int]
) -> Undo:
    """Return the undo of a run; one without members where there is nothing to go back to.

    That is a first deployment, which the next run completes. A change of the engine, an adoption and static pods are
    left to the next run as well: packages go with the first, files of others are set aside in the second, and nothing
    but the kubelet ends the last.

    :param members: as in `planner`
    :param planned: the plan of each
    :param held: how many VIPs each member holds
    """
    here = [member for member in members if not member.get("outside_limit")]
    serving = [member["name"] for member in here if _runs_ours(member["host"])]
    names = [member["name"] for member in here]
    is_left = way.migrating or any(_takes_over(member["host"]) or planned[member["name"]].pods for member in here)
    if not serving or is_left:
        return Undo()
    settle = max(planned[name].expected.settle for name in names)
    first = way.sole_router or max(serving, key=lambda name: held[name])
    return Undo(names, first if settle else "", settle)


def _runs_ours(host: Dict[str, Any]) -> bool:
    """Whether a router of this collection runs."""
    return bool({*ROUTERS} & {*host.get("own_units", [])} & {*host.get("active_units", [])})


def _takes_over(host: Dict[str, Any]) -> bool:
    """Whether a run keeps files of others beside its own, or sets them aside."""
    return any(each.get("keep") or each.get("set_aside") for each in host.get("takeover", {}).values())
