# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which failures a drill injects, and in which order. Pure; runs on the controller.

A round is one event, injected once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

from ..._shared import events as known
from ..._shared.held_back import mend, why
from ..._shared.membership import carriers
from . import announced as by_bgp
from . import lost_servers

START_DELAY = 3.0  # seconds between arming an event and the failure, in which the probe starts
MARGIN = 1.5  # seconds that a failure lasts beyond what the plan allows for the VIP to move
HARMLESS_DURATION = 10.0  # seconds that a harmless failure lasts: longer than any check takes to notice it
RETURN_TIMEOUT = 15.0  # seconds to wait for the first holder to be back, besides what the plan itself waits
LATE_MS = 1500.0  # for which an answer is waited for after the probe's time-out: longer than a lost SYN takes
MOST_OPEN = 400  # connections of the probe at a time
BOOT_TIMEOUT = 600.0  # seconds that a host may take until it is back from a reboot


def rounds(
    plans: List[Dict[str, Any]],
    members: List[Dict[str, Any]],
    events: List[str],
    repeats: int,
    send: str = "",
    seen: lost_servers.Seen = (),
) -> List[Dict[str, Any]]:
    """Return the rounds of a drill: every event on every VIP, ``repeats`` times.

    :param plans: of each pair or cluster, as `layout_plans` returns them
    :param members: each ``{name, host, timeouts}``, the host as `host_info` returns it
    :param send: what the user has the probe send
    :param seen: as `lost_servers.lines` takes it
    """
    macs = [{"name": member["name"], "macs": _macs(member["host"]["addresses"])} for member in members]
    every = [
        (line, plan)
        for plan in plans
        for line in (*_of_plan(plan, members), *lost_servers.lines(plan, members, events, send, seen))
    ]
    served = {address for plan in plans for address, _port in plan["targets"]}
    return [
        {**_round(line, plan), "members": macs, "repeat": repeat + 1}
        for event in events
        for line, plan in every
        if line["event"] == event and line["vip"] in served
        for repeat in range(repeats)
    ]


def _of_plan(plan: Dict[str, Any], members: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    by_vrrp = [line for line in plan["outages"] if not by_bgp.is_line(line)]
    return [*by_vrrp, *by_bgp.lines(plan, members)]


def asked(rounds_of_drill: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return which members may have which event, and what `drill_event` needs to know of each: ``{member, ...}``."""
    keys = ("event", "flap_seconds", "vip", "server", "router")
    found = {
        (round_["event"], name): {**{key: round_[key] for key in keys}, "member": name, **target}
        for round_ in rounds_of_drill
        for name, target in round_["targets"].items()
        if (round_["on"] or round_["holder"]) in ("", name)
    }
    return list(found.values())


def announced(rounds_of_drill: List[Dict[str, Any]]) -> List[str]:
    """Return what a dry run says: nothing is injected, so there is nothing to measure or to compare with the plan."""
    counted = Counter((round_["event"], round_["on"] or round_["holder"], round_["vip"]) for round_ in rounds_of_drill)
    return [
        "Nothing is injected with --check. Without it there would be:",
        *(
            f"{event} on {holder or 'the member that holds the VIP'}, {vip}: {times} round{'s' if times > 1 else ''}"
            for (event, holder, vip), times in counted.items()
        ),
    ]


def refusals(answers: List[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each member on which an event cannot be injected.

    :param answers: the results of a loop over `asked`, in which `drill_event` ran in check mode
    """
    return [
        f"{answer['item']['event']} is not for {answer['item']['member']}: {answer['msg']}"
        for answer in answers
        if answer.get("failed") or answer.get("unreachable")
    ]


def held_back(members: List[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each member that is held back: no plan is for a pair without it.

    :param members: as for `rounds`
    """
    records = {member["name"]: member["host"].get("held_back") for member in members}
    return [
        f"Nothing is drilled while {name} is held back: {why(record)} {mend(record)}"
        for name, record in records.items()
        if record
    ]


def _round(line: Dict[str, Any], plan: Dict[str, Any]) -> Dict[str, Any]:
    """Return one event on one VIP: how long it lasts, how long it is watched, and what the plan forecasts.

    It happens ``on`` a member, or on the ``holder`` of the VIP; ``waits`` is for how long the probe begins later.
    """
    late_ms = lost_servers.late_ms(line, LATE_MS)
    boots_for = BOOT_TIMEOUT if line["event"] == known.HOST_REBOOTED else 0
    special = _of_member(line, plan, boots_for) if by_bgp.is_line(line) else _of_holder(line, plan, boots_for)
    return {
        "event": line["event"],
        "vip": line["vip"],
        "forecast": line,
        "boots_for": boots_for,
        "late_ms": late_ms,
        "apart_ms": late_ms / MOST_OPEN,
        "server": line.get("server"),
        "router": line.get("router"),
        "flap_seconds": known.flap_seconds(plan["advert_interval"]),
        **special,
    }


def _of_member(line: Dict[str, Any], plan: Dict[str, Any], boots_for: float) -> Dict[str, Any]:
    """Return what is special of an event on one of the members that serve a VIP at the same time."""
    timing = by_bgp.timing(line, MARGIN, START_DELAY)
    every = dict.fromkeys([*line["before"], *line["left"]])
    return {
        **timing,
        "on": line["member"],
        "holder": "",
        "settle": 2 * RETURN_TIMEOUT,
        "revert_after": boots_for or timing["revert_after"],
        "duration": timing["minimum"] + RETURN_TIMEOUT + boots_for,
        "targets": {
            name: {"engine": plan["members"][name]["engine"], "interface": line["interface"]} for name in every
        },
    }


def _of_holder(line: Dict[str, Any], plan: Dict[str, Any], boots_for: float) -> Dict[str, Any]:
    """Return what is special of an event on the member that holds a VIP."""
    routers = [member["router"] for member in plan["members"].values()]
    delays = [instance["preempt_delay"] for router in routers for instance in router["instances"]]
    timing = _timing(line)
    # The outage of a failure that lasts may be longer than the failure.
    outage = line["outage_ms"] / 1000 if line.get("lasts_ms") else 0
    longest = RETURN_TIMEOUT + 4 * plan["advert_interval"] + max(delays) + outage
    return {
        **timing,
        # Without preemption any member may hold the VIP, and the event is injected on the one that does. After some
        # failures the first holder has it again even so: a VIP returns only if it does after each of them.
        "on": "",
        "holder": line["before"] if _always_returns(line["vip"], plan) else "",
        "settle": 2 * longest,
        "revert_after": boots_for or timing["revert_after"],
        "duration": timing["minimum"] + longest + boots_for,
        "targets": _targets(line["vip"], plan),
    }


def _timing(line: Dict[str, Any]) -> Dict[str, float]:
    """Return in how many seconds a holder's event happens and is reverted, and for how long the probe looks."""
    if lost_servers.is_return(line):
        return lost_servers.timing(line, MARGIN, START_DELAY)
    lasts = line.get("lasts_ms", 0) / 1000
    harmless = line["before"] == line["after"] and line["outage_ms"] > 0 and not lasts
    # What the plan says of the two holders is for a failure that lasts no longer.
    revert_after = lasts or max(line["outage_ms"] / 1000, HARMLESS_DURATION if harmless else 0) + MARGIN
    minimum = START_DELAY + revert_after + 0.5
    return {"after": START_DELAY, "waits": 0, "revert_after": revert_after, "minimum": minimum}


def _targets(vip: str, plan: Dict[str, Any]) -> Dict[str, Dict[str, str]]:
    """Return the members that may hold a VIP, each with its engine and its interfaces."""
    return {
        name: {"engine": member["engine"], **_interfaces(instance, carriers(instance)[vip])}
        for name, member in plan["members"].items()
        for instance in member["router"]["instances"]
        if vip in carriers(instance)
    }


def _interfaces(instance: Dict[str, Any], carrier: str) -> Dict[str, str]:
    """Return the interface of a VIP, and that of VRRP where it is another one."""
    apart = {"vrrp_interface": instance["interface"]} if instance["interface"] != carrier else {}
    return {"interface": carrier, **apart}


def _always_returns(vip: str, plan: Dict[str, Any]) -> bool:
    return all(line["back"] == line["before"] for line in plan["outages"] if line["vip"] == vip)


def _macs(addresses: List[Dict[str, Any]]) -> List[str]:
    """Return a member's hardware addresses, by which the probe recognises its answers."""
    return sorted({info["mac"] for info in addresses if info["interface"] != "lo" and info["mac"]})
