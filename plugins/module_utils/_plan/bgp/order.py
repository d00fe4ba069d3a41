# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which order a run changes members that announce their VIPs by BGP: one after the other, each proved. Pure.

Each of them serves, so that what fails on one leaves the others. Those that announce nothing now come first.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from ..model.plan import MemberPlan, Undo, Vip

NO_UNDO = Undo(reason="members that announce by BGP have no undo yet. The next run completes what this one has begun.")


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
