# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The forecast where BGP carries the VIPs: which share of connections each failure costs, and for how long. Pure.

There is no election to simulate: each member stands for itself. A member that fails costs the connections that routers
send to it until they have taken its path out, and nothing of the others' new ones. What lasts is another matter. A
router that spreads connections by a hash over its paths spreads them anew when a path goes or comes, and a proxy does
not know the connections of another one. RFC 2992 has the shares: at worst (n - 1) / n of all.

It is assumed that the network spreads connections equally, and that each router accepts BFD's packets as often as
they are sent, unless `router_interval` says how often.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._shared import events
from ..model.bgp_values import bfd_interval
from ..model.plan import Plan, Vip
from .gate import noticed_ms

# Measured with FRR 8.4 on both sides, loaded with connections on two cores, at most:
WITHDRAW_MS = 200  # from the event to the router's kernel, 143 to 184
BFD_LATE_MS = 100  # beyond interval x multiplier: 50 x 3 in 204 to 216, 100 x 3 in 281 to 348, 300 x 3 in 805 to 979
DRAINED = "drained"  # which is planned, and no drill injects it
UNKNOWN_TO_BGP = (events.BOTH_RELOADED, events.SLOW_BACKEND)  # the second is told of each service


class Forecast(NamedTuple):
    """What `forecast` returns.

    :ivar outages: a line for each VIP and event, at the member where it is worst: ``{event, vip, member, before, left,
        share, outage_ms, lost, lost_at_most, back_lost}``: the members that announce it before and while it lasts, the
        share of new connections that fail and for how long, how much of the lasting ones is lost at least and at most,
        and at most of those of the others when the path is back; shares are in percent. ``kept`` has the ports
        at which direct return keeps all of them. ``router`` is the one that is gone
    """

    faults: Faults
    outages: List[Dict[str, Any]]
    table: List[str]


def of_both(by_vrrp: Forecast, by_bgp: Forecast) -> Forecast:
    """Return the forecast where both carry the VIPs, each for clients of its own."""
    table_of_both = [
        "Clients on the members' link, by VRRP:",
        *by_vrrp.table,
        "Clients that come through a router, by BGP:",
        *by_bgp.table,
    ]
    return Forecast([*by_vrrp.faults, *by_bgp.faults], [*by_vrrp.outages, *by_bgp.outages], table_of_both)


class Member(NamedTuple):
    """What of a member's plan a VIP depends on."""

    name: str
    tracked: List[str]
    checks: Dict[str, Mapping[str, Any]]
    peers: List[Mapping[str, Any]]
    bfd: Mapping[str, int]

    def noticed(self, blind: Sequence[str], hangs: bool) -> Optional[int]:
        """Return after how many milliseconds the first check fails that sees a failure; None if none does."""
        seeing = [self.checks[name] for name in self.tracked if name not in blind]
        return min((noticed_ms(check, hangs) for check in seeing), default=None)

    @property
    def silence_ms(self) -> int:
        """How long routers keep the path of a host that is silent, until the last of them has noticed."""
        return max((self.silence_of(peer) for peer in self.peers), default=0)

    def silence_of(self, peer: Mapping[str, Any]) -> int:
        """How long one router keeps the path of a host that it does not hear."""
        of_bfd = bfd_interval(self.bfd) * self.bfd["multiplier"] + BFD_LATE_MS
        return min(of_bfd, 1000 * peer["hold_time"]) if peer["bfd"] else 1000 * peer["hold_time"]

    @property
    def has_bfd(self) -> bool:
        return any(peer["bfd"] for peer in self.peers)


def members_of(plan: Plan, vip: Vip) -> List[Member]:
    """Return those that announce a VIP."""
    return [_member(name, plan.members[name].bgp, vip) for name in vip.order]


def _member(name: str, bgp: Mapping[str, Any], vip: Vip) -> Member:
    tracked = [each["track"] for each in bgp["anycast"]["vips"] if each["address"] == vip.address]
    family = "ipv6" if vip.version == 6 else "ipv4"
    peers = [peer for peer in bgp["frr"]["peers"] if family in peer["families"]]
    checks = {check["name"]: check for check in bgp["anycast"]["checks"]}
    return Member(name, [*tracked[0]], checks, peers, bgp["frr"]["bfd"])


def forecast(plan: Plan, lasting: Mapping[str, str], kept: Mapping[str, Sequence[int]]) -> Forecast:
    """Return what each failure costs. A plan in which one of the programs can fail unseen has faults.

    :param lasting: by VIP, what becomes of lasting connections where a direct plane keeps some
    :param kept: by VIP, at which ports it does
    """
    faults: Faults = []
    outages = []
    for vip in plan.vips:
        members = members_of(plan, vip)
        programs = [*_of_programs(plan.watched, vip, members, faults)]
        outages += [_line(vip, members, *each) for each in (*programs, *_of_hosts(members))]
        outages += [_returning(vip, members), *_without_a_router(vip, members)]
    outages = [{**line, "kept": [*kept.get(line["vip"], ())]} for line in outages]
    return Forecast(faults, outages, table(plan, outages, lasting))


Case = Tuple[str, str, bool, int, bool]  # event, member, whether its new connections fail, for how long, loses lasting


def _of_programs(
    watched: Mapping[str, Mapping[str, Any]], vip: Vip, members: Sequence[Member], faults: Faults
) -> Iterator[Case]:
    for spec in watched.values():
        if vip.name not in spec["instances"]:
            continue
        if spec["fatal"] and not spec.get("serves"):
            worst, late = members[0].name, 0
            for member in members:
                noticed = member.noticed(spec.get("blind_trackers", []), spec.get("hangs", False))
                if noticed is None:
                    faults.append(_unseen(vip, member.name, spec))
                elif noticed > late:
                    worst, late = member.name, noticed
            yield from ((event, worst, True, late + WITHDRAW_MS, True) for event in spec["fatal"])
        harmless = [*spec["harmless"], *(spec["fatal"] if spec.get("serves") else [])]
        yield from ((event, members[0].name, False, 0, False) for event in harmless if event not in UNKNOWN_TO_BGP)


def _unseen(vip: Vip, name: str, spec: Mapping[str, Any]) -> str:
    what = spec.get("failure", "haproxy dies")
    return (
        f"{vip.address}: when {what} on {name}, none of its checks without a weight notices that, and {name} would go "
        "on to announce the VIP: leave the weight out, or turn a check of it on."
    )


def _of_hosts(members: Sequence[Member]) -> Iterator[Case]:
    silent = max(members, key=lambda member: member.silence_ms)
    first = members[0].name
    for event in (events.HOST_CUT, events.PORT_DOWN):
        yield (event, silent.name, True, silent.silence_ms, True)
    yield (events.HOST_REBOOTED, first, True, WITHDRAW_MS, True)
    yield (events.PATH_WITHDRAWN, first, True, WITHDRAW_MS, True)
    yield (DRAINED, first, False, 0, True)
    yield (events.BGP_KILLED, first, False, 0, True)
    watched = [member.name for member in members if member.has_bfd]
    if watched:
        yield (events.BFD_LOST, watched[0], False, 0, True)


def _line(
    vip: Vip, members: Sequence[Member], event: str, name: str, fails: bool, outage_ms: int, leaves: bool
) -> Dict[str, Any]:
    count = len(members)
    every = [member.name for member in members]
    own, most = round(100 / count), round(100 * (count - 1) / count)
    return {
        "event": event,
        "vip": vip.address,
        "member": name,
        "before": every,
        "left": [each for each in every if each != name or not leaves],
        "share": own if fails else 0,
        "outage_ms": outage_ms,
        "lost": own if leaves else 0,
        "lost_at_most": max(own, most) if leaves else 0,
        "back_lost": most if leaves else 0,
    }


def _returning(vip: Vip, members: Sequence[Member]) -> Dict[str, Any]:
    """Return the line of a path that comes back: what lasts is of the others until then."""
    line = _line(vip, members, events.PATH_BACK, members[0].name, False, 0, True)
    lost = {"lost": min(line["lost"], line["back_lost"]), "lost_at_most": line["back_lost"], "back_lost": 0}
    return {**line, "before": line["left"], "left": line["before"], **lost}


def _without_a_router(vip: Vip, members: Sequence[Member]) -> Iterator[Dict[str, Any]]:
    """Yield the line of the router, on a link of a member, that is the slowest to notice that it does not hear it."""
    near = [(member, peer) for member in members for peer in member.peers if not peer.get("multihop")]
    for member, peer in [max(near, key=lambda pair: pair[0].silence_of(pair[1]))] if near else []:
        line = _line(vip, members, events.ROUTER_GONE, member.name, True, member.silence_of(peer), True)
        left = line["before"] if len(member.peers) > 1 else line["left"]  # other routers have its path
        yield {**line, "left": left, "router": peer["address"]}


def table(plan: Plan, outages: Sequence[Mapping[str, Any]], lasting: Mapping[str, str]) -> List[str]:
    """Return the forecast in lines: each VIP with what each failure costs, and what its routers must do."""
    lines = []
    for vip in plan.vips:
        members = ", ".join(vip.order)
        lines.append(f"{vip.address}: announced by {members}; each has {round(100 / len(vip.order))} % of connections")
        noun = "lasting ones of the proxy" if lasting.get(vip.address) else "lasting ones"
        lines += [_text(line, noun) for line in outages if line["vip"] == vip.address]
        lines += [f"  lasting connections  {lasting[vip.address]}"] if lasting.get(vip.address) else []
    return [*lines, *routers(plan)]


def _text(line: Mapping[str, Any], noun: str) -> str:
    new = f"{line['share']} % of new ones fail" if line["share"] else "no new one fails"
    text = f"  {line['event'].replace('_', ' '):<20} {new:<24} at most {line['outage_ms']:>5} ms"
    if not line["lost"]:
        return f"{text}   {noun} go on"
    least = f"{line['lost']} to " if line["lost"] < line["lost_at_most"] else ""
    lost = f"{least}{line['lost_at_most']} %"
    back = f", and up to {line['back_lost']} % when the path is back" if line["back_lost"] else ""
    return f"{text}   {lost} of {noun} are lost{back}"


def routers(plan: Plan) -> List[str]:
    """Return what the routers must do, which nobody but their owner sets up, and which of them fails alone."""
    seen: Dict[str, List[str]] = {}
    numbers: Dict[str, int] = {}
    own: Dict[str, int] = {}
    for name, member in plan.members.items():
        for peer in member.bgp["frr"]["peers"] if member.bgp else []:
            seen.setdefault(peer["address"], []).append(name)
            numbers[peer["address"]] = peer["asn"]
            own[name] = member.bgp["frr"]["asn"]
    lines = ["The routers, which their owner sets up:"]
    lines += [_row(f"{each} (AS {numbers[each]})", f"peers with {', '.join(names)}") for each, names in seen.items()]
    vips = ", ".join(f"{vip.address}/{128 if vip.version == 6 else 32}" for vip in plan.vips)
    lines.append(_row("accept", f"{vips} from each member, and nothing else"))
    return [*lines, *_of_paths(plan, own, numbers), *_of_bfd(plan), *_alone(plan, seen)]


def _row(what: str, text: str) -> str:
    return f"  {what:<28} {text}"


def _of_paths(plan: Plan, own: Mapping[str, int], numbers: Mapping[str, int]) -> Iterator[str]:
    most = max(len(vip.order) for vip in plan.vips)
    internal = any(number in own.values() for number in numbers.values())
    how = f"maximum-paths {'ibgp ' if internal else ''}{most}, hashed by addresses and ports (layer 4)"
    several = len({*own.values()}) > 1 or len({*numbers.values()}) > 1
    relax = ", with bestpath as-path multipath-relax, because the AS numbers differ" if several else ""
    yield _row("share (ECMP)", f"{how}{relax}")
    yield _row("", "one that uses fewer paths sends all to those: a failure there costs more than the share above")
    yield _row("return path", "no strict reverse path filter: answers come from the VIP at each member's interface")
    yield _row("drain", "honour graceful shutdown (community 65535:0, RFC 8326): use such a path last")


def _of_bfd(plan: Plan) -> Iterator[str]:
    every = [member.bgp["frr"] for member in plan.members.values() if member.bgp]
    watched = [each["bfd"] for each in every for peer in each["peers"] if peer["bfd"]]
    yield from dict.fromkeys(_row("BFD", _timers(bfd)) for bfd in sorted(watched, key=bfd_interval))
    without = {peer["hold_time"] for each in every for peer in each["peers"] if not peer["bfd"]}
    if without:
        yield _row("no BFD", f"a host that is silent keeps its path for the hold time, {max(without)} s")


def _timers(bfd: Mapping[str, int]) -> str:
    given = "as the members have it" if bfd_interval(bfd) == bfd["interval"] else "with router_interval"
    return f"{bfd_interval(bfd)} ms x {bfd['multiplier']}, {given}"


def _alone(plan: Plan, seen: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the routers whose loss some member, or a whole VIP, does not survive."""
    peers = {
        vip.address: {member.name: {peer["address"] for peer in member.peers} for member in members_of(plan, vip)}
        for vip in plan.vips
    }
    for router in seen:
        vips = [vip for vip, of_member in peers.items() if all(having == {router} for having in of_member.values())]
        if vips:
            yield _row("single point", f"{router}: nobody reaches {', '.join(vips)} without it")
            continue
        names = [name for name in seen[router] if any(of_member.get(name) == {router} for of_member in peers.values())]
        if names:
            yield _row("loss of a router", f"{router} takes {', '.join(names)} with it, and the others have all")
