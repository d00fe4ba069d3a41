# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of pairs and clusters: who has each VIP, who could take over, and what differs from the inventory. Pure.

It says what was read, and names what was not. What it says of VIPs is in `holding` where VRRP moves them, and in
`announcing` where members announce them by BGP.
"""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._agent import VERSION
from ..._shared import markdown, resolver_records
from ..._shared.engines import AUTO
from . import announcing, firewalls, holding
from .members import BGP, Layout, Member, layouts
from .outside import heard_through

UNPLANNED = "What the inventory plans was not compared with firewalls and answers: {}"
COMPARED = (
    "Only the inventory's VIPs, members and engines were compared; onprem.lb.site --check --diff compares everything."
)


class Status(NamedTuple):
    """What the playbook prints."""

    lines: List[str]
    data: Dict[str, Any]
    faults: List[str]  # a sentence for each VIP that is not where it should be, and each member that is not ready


class Beside(NamedTuple):
    """What is known beside the members.

    :ivar drill: the last report of a drill, as `report.report` returns it, with ``at``, seconds since 1970
    :ivar probe: the host that is no member and has asked through the VIPs, if there is one
    :ivar heard: what `layout_info` has returned there
    :ivar asked: the results of `vip_probe` there, as `outside.heard_through` takes them
    :ivar plans: what the inventory plans, as `layout_drafts` returns it; none where nobody knows
    """

    drill: Mapping[str, Any] = {}
    probe: str = ""
    heard: Mapping[str, Any] = {}
    asked: Sequence[Mapping[str, Any]] = ()
    plans: Sequence[Mapping[str, Any]] = ()


def questions(given: List[Dict[str, Any]], plans: Sequence[Mapping[str, Any]] = ()) -> Dict[str, Any]:
    """Return where a host that is no member connects: a plan for `layout_info` with nothing but targets.

    For each VIP that has one holder, or may be announced, these are the ports of the plan, at which clients connect,
    and then those at which the balancers behind it listen. A redirect, or a router that is not ours, may be behind the
    former.

    :param plans: as `layout_drafts` returns them
    """
    every = [(layout, vip) for layout in layouts(given) for vip in layout.every_vip if words(layout).asks(layout, vip)]
    planned = [target for plan in plans for target in plan["targets"]]
    targets = [
        [vip, port]
        for layout, vip in every
        for port in dict.fromkeys([*(port for address, port in planned if address == vip), *_ports(layout, vip)])
    ]
    return {"vips": [], "services": [], "units": [], "programs": [], "targets": targets}


def _ports(layout: Layout, vip: str) -> List[int]:
    return [port for member in layout.read if vip in member.held for port in member.ports_of(vip)]


def words(layout: Layout) -> Any:
    """Return the module that says what becomes of the VIPs."""
    return announcing if layout.reach == BGP else holding


NOTHING_BESIDE = Beside()


def status(given: List[Dict[str, Any]], beside: Beside = NOTHING_BESIDE) -> Status:
    """Return the status.

    :param given: the hosts of the play, as `members` describes them
    """
    every = [_with_plans(layout, beside.plans) for layout in layouts(given)]
    faults = [fault for layout in every for fault in [*vip_faults(layout), *_member_faults(layout)]]
    lines = [line for layout in every for line in [*_lines(layout), *_names(layout, beside.plans)]]
    targets = questions(given, beside.plans)["targets"]
    outside, silent = heard_through(targets, beside.probe, beside.heard, beside.asked)
    drilled = [_drill_line(beside.drill)] if beside.drill else []
    faults += silent
    data = {"layouts": [_data(layout) for layout in every], "faults": faults}
    data.update({"drill": beside.drill} if beside.drill else {})
    unplanned = [UNPLANNED.format(fault) for plan in beside.plans for fault in plan["faults"][:1]]
    return Status([*lines, *outside, *drilled, *unplanned, COMPARED], data, faults)


def faults_after_return(given: List[Dict[str, Any]]) -> List[str]:
    """Return what is wrong with members that have returned to a state: its VIPs count, and not the inventory's."""
    every = [layout._replace(vips=[]) for layout in layouts(given)]
    without = [f"{', '.join(layout.names)}: no configuration has a VIP." for layout in every if not layout.configured]
    return [*without, *(fault for layout in every for fault in [*vip_faults(layout), *_member_faults(layout)])]


def _with_plans(layout: Layout, plans: Sequence[Mapping[str, Any]]) -> Layout:
    """Return the members with what they are to announce, and what their firewalls refuse of what the plan opens."""
    planned = {name: member.get("announces", []) for plan in plans for name, member in plan["members"].items()}
    members = [
        each._replace(closed=firewalls.closed(each, plans), planned=planned.get(each.name)) for each in layout.members
    ]
    return layout._replace(members=members)


def _lines(layout: Layout) -> List[str]:
    of_vips, vips = words(layout), layout.every_vip
    return [
        *(of_vips.vip_line(layout, vip) for vip in vips if layout.read),
        *markdown.table([of_vips.HEAD, *(_row(layout, member) for member in layout.members)]),
        *of_vips.lines(layout),
        *_member_faults(layout),
        *(f"{member.name} {member.seen['undo']}" for member in layout.read if member.seen.get("undo")),
        *(line for member in layout.read for line in _servers_down(member)),
        *firewalls.unknown(layout.read, of_vips.HEARD),
        *(f"{member.name}: {sentence}" for member in layout.read for sentence in member.seen.get("full", [])),
        *(line for member in layout.read for line in _not_following(member)),
        *(f"{member.name}'s direct plane: {why}" for member in layout.read for why in member.seen.get("direct", [])),
        *(f"{member.name}'s names: {why}" for member in layout.read for why in member.seen.get("names", [])),
        *(f"{name} was not read: it is outside --limit." for name in layout.left_out),
        *differences(layout),
    ]


def _row(layout: Layout, member: Member) -> List[str]:
    of_vips = words(layout)
    if member.problem:
        return [member.name, *["unknown"] * (len(of_vips.HEAD) - 1)]
    seen, servers = member.seen, member.seen["servers"]
    return [
        member.name,
        seen["engine"] or "none",
        ", ".join(f"{program} {version}" for program, version in _versions(seen)) or "unknown",
        of_vips.count(layout, member),
        "no" if member.reasons else "yes",
        f"{servers['up']} of {servers['total']}" if servers["total"] else "unknown",
    ]


def _versions(seen: Dict[str, Any]) -> List[Tuple[str, str]]:
    own = [("onprem.lb", seen["written_by"])] if seen["written_by"] else []
    return [*own, *seen["versions"].items()]


def vip_faults(layout: Layout) -> List[str]:
    """Return a sentence for each VIP that has not exactly one holder, or that nobody announces."""
    every = layout.every_vip if layout.read else []
    return [fault for fault in (vip_fault(layout, vip) for vip in every) if fault]


def vip_fault(layout: Layout, vip: str) -> str:
    return str(words(layout).vip_fault(layout, vip))


def _member_faults(layout: Layout) -> List[str]:
    faults = (words(layout).member_fault(layout, member) for member in layout.members)
    return [fault for fault in faults if fault]


def _servers_down(member: Member) -> List[str]:
    by_state: Dict[str, List[str]] = {}
    for server in member.seen["servers"]["others"]:
        by_state.setdefault(server["state"], []).append(f"{server['service']}/{server['name']}")
    return [f"On {member.name} these servers are {state}: {', '.join(names)}." for state, names in by_state.items()]


def _not_following(member: Member) -> List[str]:
    return [f"{member.name} does not follow its cluster: {why}" for why in member.seen["not_following"]]


def differences(layout: Layout) -> List[str]:
    """Return what differs between the inventory and the members that were read, and what is not in force there."""
    sentences = {member.name: [*member.seen["stale"], *member.seen.get("replaced", [])] for member in layout.read}
    found = [f"{name}: {sentence}" for name, given in sentences.items() for sentence in given]
    found += [
        f"{member.name} was set up by onprem.lb {member.seen['written_by']}, and this is {VERSION}."
        for member in layout.read
        if member.seen["written_by"] not in ("", VERSION)
    ]
    found += [
        f"{member.name} runs the engine {member.seen['engine']}, and the inventory says {member.engine_wanted}."
        for member in layout.read
        if member.seen["engine"] and member.engine_wanted not in (AUTO, member.seen["engine"])
    ]
    found += words(layout).differences(layout)
    configured = {vip for member in layout.read for vip in member.addresses}
    for vip in layout.every_vip if configured else []:
        if vip not in configured:
            found.append(f"{vip} is a VIP in the inventory, but in no member's configuration.")
        elif vip not in layout.vips:
            found.append(f"{vip} is a VIP in the members' configuration, but not in the inventory.")
    recorded = {name for member in layout.read for name in member.seen["members"]}
    found += [
        f"{name} was a member in the last run, but is not in the inventory." for name in recorded - {*layout.names}
    ]
    if recorded:
        found += [
            f"{name} is a member in the inventory, but was not one in the last run."
            for name in layout.names
            if name not in recorded
        ]
    return found


def _drill_line(drill: Mapping[str, Any]) -> str:
    at = datetime.datetime.fromtimestamp(drill["at"], datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    if drill.get("wrong"):
        return f"The report of {at} is skipped: {drill['wrong']}."
    worst = max((row["worst_ms"] for row in drill["rows"] if row["worst_ms"] is not None), default=None)
    measured = "none measured" if worst is None else f"{worst:.0f} ms at worst"
    judged = f"{len(drill['faults'])} faults" if drill["faults"] else "as planned"
    return f"The last drill was at {at}: {len(drill['rows'])} events, {measured}, {judged}."


def _names(layout: Layout, plans: Sequence[Mapping[str, Any]]) -> List[str]:
    """Return which members' resolvers answer other addresses than the inventory has, as after a run with --limit."""
    wanted: Mapping[str, List[str]] = next(
        (plan.get("names", {}) for plan in plans if {*plan["members"]} & {*layout.names}), {}
    )
    return resolver_records.outdated(wanted, {member.name: member.seen.get("named", {}) for member in layout.read})


def _data(layout: Layout) -> Dict[str, Any]:
    return {
        "vips": [words(layout).vip_data(layout, vip) for vip in layout.every_vip],
        "members": [_member_data(layout, member) for member in layout.members],
        "not_asked": layout.left_out,
        "differences": differences(layout),
    }


def _member_data(layout: Layout, member: Member) -> Dict[str, Any]:
    of_vips = words(layout)
    kept = ("engine", "written_by", "versions", *of_vips.MEMBER_KEYS, "servers", "held_back", "undo", "not_following")
    asked = ("firewall", "full", "names", "direct")
    return {
        "name": member.name,
        "was_read": not member.problem,
        of_vips.CAPABLE: None if member.problem else not member.reasons,
        "reasons": [member.problem] if member.problem else member.reasons,
        **{key: member.seen[key] for key in (*kept, *asked) if key in member.seen},
    }
