# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rounds of a drill where BGP carries the VIPs, and what it measured of them. Pure; runs on the controller.

All members of a VIP serve at the same time, and the routers between them and the probe choose one for each connection.
So an event is injected on the member for which the forecast is the worst, and costs a part of the connections: a share
of the new ones, for a while, and of those that last. Nobody sees which member has a connection.

The probe ends before the event is reverted, so that the path that comes back then costs it nothing: `path_back`
measures that.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set

from ..._shared import events

LASTING_S = 3.0  # until a lasting connection knows that it has ended: its kernel asks every second
BALANCER_ENDS = (events.HAPROXY_KILLED, events.HAPROXY_STOPPED)  # whose kernel closes its connections then
SPARE_S = 7.0  # by which the probe may start later, and for which it waits for late answers, before the revert
GONE_S = 5.0  # after a path is withdrawn, until the probe opens its lasting connections, for one that comes back
AT_ONCE_S = 0.2
# What ends by itself, so that the path may be back while the probe looks.
BRIEF = (events.HAPROXY_KILLED, events.BGP_KILLED, events.HOST_REBOOTED)
ON_INTERFACE = (events.HOST_CUT, events.PORT_DOWN)
DEVIATIONS = 3.0  # beyond which a share is not by chance

Line = Dict[str, Any]
Plan = Mapping[str, Any]
Item = Mapping[str, Any]


class Chance(NamedTuple):
    """One event on one VIP: its line of the forecast, or why there is none."""

    line: Line
    why: str


def is_line(line: Mapping[str, Any]) -> bool:
    """Whether a line of a forecast is of a VIP that BGP carries."""
    return "share" in line


def lines(plan: Plan, members: Sequence[Mapping[str, Any]]) -> List[Line]:
    """Return the lines of the forecast that can be drilled, as those of VRRP.

    :param members: each ``{name, host}``, the host as `host_info` returns it
    """
    return [chance.line for chance in _chances(plan, members) if not chance.why]


def refusals(plans: Sequence[Plan], members: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> List[str]:
    """Return why no VIP can have a wanted event: a sentence for each VIP. One that another VIP can have is drilled."""
    every = [each for plan in plans for each in _chances(plan, members) if each.line["event"] in wanted]
    possible = {each.line["event"] for each in every if not each.why}
    return [
        f"{each.line['event']} is not for {each.line['vip']}: {each.why}."
        for each in every
        if each.line["event"] not in possible
    ]


def _chances(plan: Plan, members: Sequence[Mapping[str, Any]]) -> List[Chance]:
    hosts = {member["name"]: member["host"] for member in members}
    found = []
    for given in filter(is_line, plan["outages"]):
        links = _links(plan["members"][given["member"]]["bgp"]["frr"]["peers"], hosts[given["member"]])
        line = {**given, "two_holders_ms": 0, "back_ms": 0, "back": given["left"], "after": given["left"]}
        found.append(Chance({**line, "interface": min(links, default="")}, _unfit(given, links)))
    return found


def _links(peers: Sequence[Mapping[str, Any]], host: Mapping[str, Any]) -> Set[str]:
    """Return the interfaces by which a member reaches its routers, or may reach them."""
    links = {info["address"]: info["interface"] for info in host["addresses"] if info["interface"] != "lo"}
    local = [peer.get("local_address") for peer in peers]
    known = {links[address] for address in local if address in links}
    return known if all(address in links for address in local) else {*links.values()}


def _unfit(line: Mapping[str, Any], links: Set[str]) -> str:
    """Return why a drill does not do this to a member; nothing if it may."""
    is_harmless = line["before"] == line["left"] and not line["share"]
    if not is_harmless and len({*line["before"], *line["left"]}) < 2:
        return f"{line['member']} is the only member that announces it"
    if line["event"] in ON_INTERFACE and len(links) != 1:
        known = ", ".join(sorted(links)) or "no interface that is known"
        return f"the routers of {line['member']} are on {known}, and the drill takes one interface away"
    return ""


def timing(line: Line, margin: float, start_delay: float) -> Dict[str, float]:
    """Return in how many seconds the event happens and is reverted, and for how long the probe looks.

    :param margin: for which an event is watched beyond what the plan allows
    :param start_delay: from arming it to the failure, in which the probe starts
    """
    minimum = start_delay + line["outage_ms"] / 1000 + margin + LASTING_S
    if line["event"] == events.PATH_BACK:
        return of_return(GONE_S, 2 * start_delay, minimum)
    return {"after": start_delay, "waits": 0, "revert_after": minimum + SPARE_S, "minimum": minimum}


def of_return(gone: float, start: float, minimum: float) -> Dict[str, float]:
    """Return the timing of what is gone before the probe begins, and comes back while it looks, in seconds.

    :param gone: until it has been noticed
    :param start: in which the probe starts
    :param minimum: for which it looks then
    """
    return {"after": AT_ONCE_S, "waits": gone, "revert_after": gone + start, "minimum": start + minimum}


def of(item: Item) -> bool:
    """Whether a round was of a VIP that BGP carries."""
    return is_line(item["forecast"])


def unrouted(plans: Sequence[Plan], tried: Sequence[Mapping[str, Any]]) -> List[str]:
    """Return a sentence for each VIP that the probe does not reach as a client of BGP does.

    :param tried: the results of a loop over `questions`, in which `vip_probe` tried each
    """
    announced = {line["vip"] for plan in plans for line in plan["outages"] if is_line(line)}
    of_bgp = [one for one in tried if one["item"]["vip"] in announced]
    why = {one["item"]["vip"]: one["reason"] or "it is on a link of this host." for one in of_bgp if not one["router"]}
    return [
        f"The probe does not reach {vip} through a router, where the clients of BGP stand: {reason} Name a host behind "
        "the routers with -e drill_probe=HOST."
        for vip, reason in why.items()
    ]


def _failed(item: Item) -> int:
    """Return how many new connections were not answered in time, from the first of them to the last.

    One that is being opened as a path goes or comes is lost as one that lasts.
    """
    line, seen = item["forecast"], item["seen"]["impaired"]
    opening = seen["open"] if line["share"] or not line["lost_at_most"] else 0
    return int(seen["late"] + seen["failed"] + opening)


def _lost(item: Item) -> int:
    """Return how many lasting connections were lost, without those that a balancer ended because they were silent."""
    lasting = item["seen"]["lasting"]
    return int(lasting["lost"] - (0 if item["event"] in BALANCER_ENDS else lasting.get("closed", 0)))


def is_met(item: Item) -> bool:
    """Whether the probe's connections met the member: routers that hash by addresses alone send them all to one."""
    return bool(_failed(item) or _lost(item) or not item["forecast"]["share"])


def _is_kept(item: Item) -> bool:
    """Whether direct return keeps the probe's connections that last, whichever member they come by."""
    return item["question"]["lasting_port"] in item["forecast"]["kept"]


def lasting_limit(item: Item) -> int:
    """Return how many percent of lasting connections a round may lose."""
    line = item["forecast"]
    if _is_kept(item):
        return 0
    back = line["back_lost"] if line["event"] in BRIEF else 0
    return int(min(100, line["lost_at_most"] + back))


def fault(item: Item) -> str:
    """Say in which way clients saw more of it than is forecast; nothing where they did not."""
    line, seen, failed = item["forecast"], item["seen"]["impaired"], _failed(item)
    limit, lost, held = lasting_limit(item), _lost(item), item["seen"]["lasting"]["held"]
    if failed and not line["share"]:
        return f"{failed} new connections failed, the plan says none."
    if failed and seen["window_ms"] > line["outage_ms"] + item["interval_ms"]:
        return f"new connections failed for {seen['window_ms']:g} ms, the plan says at most {line['outage_ms']} ms."
    # The first and the last one have failed by definition.
    if _is_more(failed - 2, seen["attempts"] - 2, line["share"]):
        return f"{failed} of {seen['attempts']} new connections failed, the plan says {line['share']} %."
    if _is_more(lost, held, limit):
        return f"{lost} of {held} lasting connections were lost, the plan says {limit} % at most."
    return ""


def _is_more(found: int, tried: int, percent: float) -> bool:
    """Whether so many of them are more than this share, and not by chance: routers draw a member for each."""
    share = percent / 100
    return found > tried * share + DEVIATIONS * math.sqrt(max(0, tried) * share * (1 - share)) + 1


def new_words(items: Sequence[Item]) -> str:
    """Return the share of new connections that failed while some did, and what is forecast; nothing without BGP."""
    rounds = [item for item in items if of(item)]
    failed, tried = sum(map(_failed, rounds)), sum(item["seen"]["impaired"]["attempts"] for item in rounds)
    if not rounds:
        return ""
    found = f"{100 * failed / tried:.0f} %" if failed else "none"
    kept = "direct return, or " if _is_kept(rounds[0]) else ""
    met = "" if all(map(is_met, rounds)) else f": {kept}the probe met other members"
    return f"{found} ({rounds[0]['forecast']['share']} %){met}"


def lasting_words(items: Sequence[Item]) -> str:
    """Return the share of lasting connections that was lost, and what is forecast; nothing without BGP."""
    rounds = [item for item in items if of(item)]
    held, lost = sum(item["seen"]["lasting"]["held"] for item in rounds), sum(map(_lost, rounds))
    if not rounds:
        return ""
    found = "none held" if not held else f"{100 * lost / held:.0f} %"
    return f"{found} ({lasting_limit(rounds[0])} %)"
