# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of pairs and clusters: who holds each VIP, who could take over, and what differs from the inventory. Pure.

It says what was read, and names what was not.
"""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent import VERSION
from ..._shared import markdown, resolver_records
from ..._shared.engines import AUTO
from . import firewalls
from .members import Layout, Member, layouts
from .outside import SYMPTOMS, heard_through

HEAD = ["member", "engine", "versions", "VIPs held", "could take over", "servers up"]
MINUTE, HOUR, DAY = 60, 3600, 86400
UNPLANNED = "What the inventory plans was not compared with firewalls and answers: {}"
COMPARED = (
    "Only the inventory's VIPs, members and engines were compared; onprem.lb.site --check --diff compares everything."
)


class Status(NamedTuple):
    """What the playbook prints."""

    lines: List[str]
    data: Dict[str, Any]
    faults: List[str]  # a sentence for each VIP without exactly one holder, and each member that could not take over


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

    For each VIP that has one holder these are the ports of the plan, at which clients connect, and then those at which
    the holder's balancer listens. A redirect, or a router that is not ours, may be behind the former.

    :param plans: as `layout_drafts` returns them
    """
    every = [(layout, vip) for layout in layouts(given) for vip in layout.every_vip if not vip_fault(layout, vip)]
    holders = [(vip, member) for layout, vip in every for member in layout.read if vip in member.held]
    planned = [target for plan in plans for target in plan["targets"]]
    targets = [
        [vip, port]
        for vip, member in holders
        for port in dict.fromkeys([*(port for address, port in planned if address == vip), *member.ports_of(vip)])
    ]
    return {"vips": [], "services": [], "units": [], "programs": [], "targets": targets}


NOTHING_BESIDE = Beside()


def status(given: List[Dict[str, Any]], beside: Beside = NOTHING_BESIDE) -> Status:
    """Return the status.

    :param given: the hosts of the play, as `members` describes them
    """
    every = [_with_firewalls(layout, beside.plans) for layout in layouts(given)]
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


def _with_firewalls(layout: Layout, plans: Sequence[Mapping[str, Any]]) -> Layout:
    """Return the members with what their firewalls refuse of what the plan opens."""
    return layout._replace(members=[each._replace(closed=firewalls.closed(each, plans)) for each in layout.members])


def _lines(layout: Layout) -> List[str]:
    vips = layout.every_vip
    return [
        *(_holder_line(layout, vip) for vip in vips if layout.read),
        *markdown.table([HEAD, *(_row(member, len(vips)) for member in layout.members)]),
        *_member_faults(layout),
        *(f"{member.name} {member.seen['undo']}" for member in layout.read if member.seen.get("undo")),
        *(line for member in layout.read for line in _servers_down(member)),
        *firewalls.unknown(layout.read),
        *(f"{member.name}: {sentence}" for member in layout.read for sentence in member.seen.get("full", [])),
        *(line for member in layout.read for line in _not_following(member)),
        *(f"{member.name}'s direct plane: {why}" for member in layout.read for why in member.seen.get("direct", [])),
        *(f"{member.name}'s names: {why}" for member in layout.read for why in member.seen.get("names", [])),
        *(f"{name} was not read: it is outside --limit." for name in layout.left_out),
        *differences(layout),
    ]


def _row(member: Member, vips: int) -> List[str]:
    if member.problem:
        return [member.name, *["unknown"] * (len(HEAD) - 1)]
    seen, servers = member.seen, member.seen["servers"]
    return [
        member.name,
        seen["engine"] or "none",
        ", ".join(f"{program} {version}" for program, version in _versions(seen)) or "unknown",
        f"{len(member.held)} of {vips}",
        "no" if member.reasons else "yes",
        f"{servers['up']} of {servers['total']}" if servers["total"] else "unknown",
    ]


def _versions(seen: Dict[str, Any]) -> List[Tuple[str, str]]:
    own = [("onprem.lb", seen["written_by"])] if seen["written_by"] else []
    return [*own, *seen["versions"].items()]


def _holder_line(layout: Layout, vip: str) -> str:
    holders, strangers = layout.holders(vip), layout.strangers(vip)
    if not holders and not strangers:
        return f"{vip} is held by nobody."
    seconds = seconds_held(layout, vip)
    age = "" if seconds is None else f", for {duration(seconds)}"
    return f"{vip} is held by {' and '.join([*holders, *map(_stranger, strangers)])}{age}."


def _stranger(mac: str) -> str:
    return f"another host ({mac})"


def seconds_held(layout: Layout, vip: str) -> Optional[int]:
    """Return for how long a VIP has its one holder, if that is known."""
    times = [held["seconds"] for member in layout.read for held in member.seen["held"] if held["address"] == vip]
    return times[0] if len(times) == 1 and not layout.strangers(vip) else None


def duration(seconds: int) -> str:
    """Return a time in its two largest units."""
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE} s"
    if seconds < DAY:
        return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"
    return f"{seconds // DAY} d {seconds % DAY // HOUR} h"


def vip_faults(layout: Layout) -> List[str]:
    """Return a sentence for each VIP that has not exactly one holder."""
    every = layout.every_vip if layout.read else []
    return [fault for fault in (vip_fault(layout, vip) for vip in every) if fault]


def vip_fault(layout: Layout, vip: str) -> str:
    """Return a sentence if a VIP has not exactly one holder."""
    holders = [*layout.holders(vip), *map(_stranger, layout.strangers(vip))]
    if not holders:
        return f"{vip} has no holder: see 'Nobody holds the VIP' in {SYMPTOMS}."
    if len(holders) == 1:
        return ""
    return f"{vip} has {len(holders)} holders: {', '.join(holders)}. See 'Several members hold the VIP' in {SYMPTOMS}."


def _member_faults(layout: Layout) -> List[str]:
    return [member.fault for member in layout.members if member.fault]


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
    found += [
        f"{member.name}'s keepalived has no hook: if it is killed, the others take its VIPs only after an "
        "Active_Down_Interval. onprem.lb.site writes the hook."
        for member in layout.read
        if not member.seen["resigns_when_killed"]
    ]
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
    worst = max((row["worst_ms"] for row in drill["rows"]), default=0)
    judged = f"{len(drill['faults'])} faults" if drill["faults"] else "as planned"
    return f"The last drill was at {at}: {len(drill['rows'])} events, {worst:.0f} ms at worst, {judged}."


def _names(layout: Layout, plans: Sequence[Mapping[str, Any]]) -> List[str]:
    """Return which members' resolvers answer other addresses than the inventory has, as after a run with --limit."""
    wanted: Mapping[str, List[str]] = next(
        (plan.get("names", {}) for plan in plans if {*plan["members"]} & {*layout.names}), {}
    )
    return resolver_records.outdated(wanted, {member.name: member.seen.get("named", {}) for member in layout.read})


def _data(layout: Layout) -> Dict[str, Any]:
    return {
        "vips": [
            {
                "address": vip,
                "holders": layout.holders(vip),
                "strangers": layout.strangers(vip),
                "seconds": seconds_held(layout, vip),
            }
            for vip in layout.every_vip
        ],
        "members": [_member_data(member) for member in layout.members],
        "not_asked": layout.left_out,
        "differences": differences(layout),
    }


def _member_data(member: Member) -> Dict[str, Any]:
    kept = ("engine", "written_by", "versions", "instances", "held", "servers", "held_back", "undo", "not_following")
    asked = ("firewall", "full", "names", "direct")
    return {
        "name": member.name,
        "was_read": not member.problem,
        "could_take_over": None if member.problem else not member.reasons,
        "reasons": [member.problem] if member.problem else member.reasons,
        **{key: member.seen[key] for key in (*kept, *asked) if key in member.seen},
    }
