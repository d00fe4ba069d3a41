# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which order a run changes members that announce their VIPs by BGP: one after the other, each proved. Pure.

Each of them serves, so that what fails on one leaves the others. Those that announce nothing now come first.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ..._shared.engines import FRR_UNIT
from ..._shared.paths import GATE
from ..model.plan import MemberPlan, Move, Undo, Vip
from .gate import noticed_ms

LATER_S, RETURN_S = 10.0, 8.0  # as `_host/states/undoing` has them
USUAL_S = 5.0  # within which the checks of a balancer notice a failure by default, and one
LONGEST_S = 10.0  # a check that takes longer to fail is not waited for on the way back


def settle(noticed: float) -> float:
    """Return what members that notice a failure within so many seconds get as ``settle``; see `serving.proof_s`."""
    return 2 * (noticed + RETURN_S) - LATER_S / 2


def undo(
    members: Sequence[Mapping[str, Any]],
    planned: Mapping[str, MemberPlan],
    vips: Sequence[Vip],
    taken_over: Sequence[str],
    move: Move,
) -> Undo:
    """Return the undo of a run; one without members, and with the reason, where none can be.

    The ``first`` returns after the others: the member that changes last, which has the settings of before for longest.

    :param planned: the plan of each
    :param taken_over: why members cannot return, because of what else the run takes over
    """
    if move.to or any(each.bgp and each.router.instances for each in planned.values()):
        return Undo(
            reason="VRRP and BGP both go on, because no member knows whom routers would send to. The next run goes on "
            "with the way, or leads back."
        )
    here = [member for member in members if not member.get("outside_limit")]
    serving = [member["name"] for member in here if announced(member["host"], vips)]
    if not serving:
        return Undo(reason="no member announces its VIPs yet. The next run completes what this one has begun.")
    for member in here:
        host = member["host"]
        if FRR_UNIT in host.get("existing_units", []) and GATE not in host.get("own_units", []):
            reason = f"{member['name']} has an FRR without the health gate, which this run takes over."
            return Undo(reason=f"{reason} The next run finds nothing more to take over, and can return.")
    if taken_over:
        return Undo(reason=taken_over[0])
    names = [member["name"] for member in here]
    judged = max(planned[name].expected.judged for name in names)
    return Undo(names, serving[-1], settle(_noticed(planned.values())), judged)


def _noticed(planned: Iterable[MemberPlan]) -> float:
    """Return within how many seconds members notice that their balancers do not serve."""
    checks = [check for each in planned for check in each.bgp.get("anycast", {}).get("checks", [])]
    seconds = [noticed_ms(check, hangs=True) / 1000 for check in checks]
    return 1 + max([each for each in seconds if each <= LONGEST_S], default=0.0)


def announced(host: Mapping[str, Any], vips: Sequence[Vip]) -> List[str]:
    """Return the VIPs that a host has on lo, from which they are announced.

    :param host: as `host_info` returns it
    """
    return [vip.address for vip in vips if vip.address in host.get("on_loopback", ())]


def order(members: Sequence[Mapping[str, Any]], vips: Sequence[Vip]) -> List[List[str]]:
    """Return the members of a run in the order in which they change; [] if all of them change at once.

    They do where none of them announces anything.
    """
    here = [member for member in members if not member.get("outside_limit")]
    serving = [member["name"] for member in here if announced(member["host"], vips)]
    others = [member["name"] for member in here if member["name"] not in serving]
    found = [*([others] if others else []), *([name] for name in serving)]
    return found if serving and len(found) > 1 else []


def proved(planned: Mapping[str, MemberPlan]) -> Dict[str, MemberPlan]:
    """Return the members' plans with what must be so on each before the next one changes: all that is so at the end."""
    return {name: member._replace(proof=member.expected if member.bgp else None) for name, member in planned.items()}
