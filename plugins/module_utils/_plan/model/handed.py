# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a layout hands to the roles of its components, in place of what a user could set beside it. Pure.

Each role gets one value: the ``settings``, which replace variables of the role, and what the role has no variable for.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._shared.engines import AGENT, HAPROXY, KEEPALIVED, NATIVE, PROXY, UNITS, VRRP
from .plan import Router

OF_COMPONENT = re.compile(r"(?P<role>haproxy|keepalived|agent|resolver)_(?P<key>\w+)")
RESOLVER = "resolver"
IPI = "ipi"
BALANCER = ("services", "down_file", "answer_port")
PEERS = ("peers", "peers_port")  # of HAProxy alone
OF_CLUSTER = ("monitors", "stats_port", "start_commands", "stop_commands")  # which users of a pair may set
TIMEOUTS = {
    HAPROXY: ("client", "server", "tunnel", "fin", "http_request"),
    AGENT: ("client", "server", "tunnel", "fin"),
}
ROUTER = (*Router._fields, "auth_pass")
FOR_THE_MODEL = ("inventory_servers", "also_answers")  # of the balancer


class About(NamedTuple):
    """What is handed on beside the plan of a member."""

    prefix: str  # of the layout
    host: Dict[str, Any]  # as `host_info` returns it
    auth_pass: str
    raw: Dict[str, Any]  # the user's raw lines for haproxy and keepalived, which no agent can have
    waits: bool  # whether its router starts later
    before: bool  # whether its router changes before its engine does


def keys(prefix: str, role: str) -> Tuple[str, ...]:
    """Return the variables of a role that a layout sets, without the role's prefix."""
    if role == RESOLVER:
        return ("layout", "address", "follows")
    of_cluster = (*OF_CLUSTER, *(f"timeout_{key}" for key in TIMEOUTS.get(role, ()))) if prefix == IPI else ()
    return {KEEPALIVED: ROUTER, HAPROXY: BALANCER + PEERS + of_cluster, AGENT: BALANCER + of_cluster + ROUTER}[role]


def overruled_variables(names: List[str], known: Sequence[str], prefix: str) -> Faults:
    """Return a sentence for each variable of a component role that a layout sets itself.

    :param known: the layout's variables
    """
    sentences = []
    for name in names:
        found = OF_COMPONENT.fullmatch(name)
        if found and found["key"] in keys(prefix, found["role"]):
            instead = f"{prefix}_{found['key']}"
            mend = f"set {instead} instead." if instead in known else f"{prefix} computes it, leave it out."
            sentences.append(f"{name} has no effect here: {mend}")
    return sentences


def to_components(member: Mapping[str, Any], about: About) -> Dict[str, Dict[str, Any]]:
    """Return what each component role is handed for a member.

    :param member: its plan as data, whose services are JSON
    """
    planned = _before(member) if about.before and member["replaced_router"] else member
    balancer = planned["balancer"]
    for_model = {**{key: balancer[key] for key in FOR_THE_MODEL}, "asking": planned["asked"]}
    own = {**_flat(balancer), **planned["router"], "auth_pass": about.auth_pass}

    def handed(role: str, **more: Any) -> Dict[str, Any]:
        return {"host": about.host, "settings": {key: own[key] for key in keys(about.prefix, role)}, **more}

    replaced = member["replaced_programs"]
    found = {
        HAPROXY: handed(
            HAPROXY,
            served_elsewhere=balancer["served_elsewhere"],
            replaces=replaced,
            contents=balancer["contents"],
            **for_model,
        ),
        KEEPALIVED: handed(KEEPALIVED, waits=about.waits),
        AGENT: handed(
            AGENT,
            replaces=replaced if member["replaces"] == NATIVE else [],
            successors=[
                *([HAPROXY] if balancer["services"] != "[]" else []),
                *([KEEPALIVED] if planned["router"]["instances"] else []),
            ],
            keep=_kept(member, about),
            **for_model,
        ),
    }
    found[AGENT]["settings"]["raw"] = about.raw if planned is member else {}
    return found


def _kept(member: Mapping[str, Any], about: About) -> List[str]:
    """Return the daemons of the agent that stay as they are for now. On the way to BGP the router ends last."""
    if about.before and member["replaced_router"]:
        return [PROXY]
    leaves = member.get("bgp") and not member["router"]["instances"]
    return [VRRP] if leaves and UNITS[AGENT].router in about.host.get("own_units", []) else []


def of_balancer(role: str, balancer: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the variables of a role that configure the balancer of a cluster."""
    known = _flat(balancer)
    return {key: known[key] for key in keys(IPI, role) if key in known}


def _flat(balancer: Mapping[str, Any]) -> Dict[str, Any]:
    return {**balancer, **{f"timeout_{key}": value for key, value in balancer["timeouts"].items()}}


def _before(member: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the plan of a member whose engine changes later: of its present engine the router alone is configured."""
    nothing = {"services": "[]", "contents": {}, "monitors": [], "answer_port": 0, "also_answers": []}
    return {
        **member,
        "router": member["replaced_router"],
        "balancer": {**member["balancer"], **nothing},
        "asked": [],
    }
