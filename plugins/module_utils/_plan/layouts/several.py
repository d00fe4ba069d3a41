# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several pairs or clusters in one run: which host belongs to which, and what two of them must not share. Pure.

A member is as in `planner`. It has the names of all members of its own pair or cluster as ``members``, and as
``faults`` what is wrong with the names of its variables.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ..._agent.config.schema import Faults
from ..members import loops
from ..members.hosts import Member
from ..members.identity import MEMBERS
from ..model import destinations, links
from ..model.plan import Plan, Vip
from . import planner
from .layout import Layout

Draw = Callable[[Layout, List[Member]], Plan]  # `planner.draft`, or `planner.plan`


class Plans(NamedTuple):
    """The plans of one run. With faults there is none."""

    faults: Faults
    plans: List[Plan] = []
    lines: List[str] = []  # what a run says of them
    snippets: List[str] = []  # what their clusters must know of them, for a forecast to say


def draw(layout: Layout, given: List[Member], one: Draw, left_out: Iterable[Any] = ()) -> Plans:
    """Return the plan of each pair or cluster of the run.

    :param left_out: ``[name, members, VIPs, VRID]`` of each host of the inventory's other pairs, as its variables are
    """
    named = [fault for member in given for fault in member.get("faults", [])]
    disputed = _disputed(layout, given)
    if disputed:
        return _refused(named + disputed)
    every = split(given)
    plans = _draw_each(layout, every, one, _possible_vrids(layout, every, left_out))
    several = len(every) > 1
    faults = [
        f"{_names(members)}: {fault}" if several else fault
        for members, plan in zip(every, plans)
        for fault in plan.faults
    ] or [
        fault
        for (members, plan), (others, other) in itertools.combinations(list(zip(every, plans)), 2)
        for fault in _shared(members, plan, others, other)
    ]
    faults = faults or destinations.between([_sender(layout, members, plan) for members, plan in zip(every, plans)])
    if named or faults:
        return _refused(named + faults)
    plans = [plan._replace(sends=[]) for plan in plans]
    lines = [[*plan.warnings, *plan.table, *plan.engines] for plan in plans]
    snippets = [plan.snippet for plan in plans]
    return Plans([], plans, _under_names(every, lines), _under_names(every, snippets))


def _refused(faults: Faults) -> Plans:
    return Plans(list(dict.fromkeys(faults)))


def _draw_each(layout: Layout, every: List[List[Member]], one: Draw, possible: List[Dict[str, Any]]) -> List[Plan]:
    """Return the plans, each with VRIDs apart from those of the others.

    :param possible: the VRIDs that pairs outside the run may have
    """
    plans: List[Plan] = []
    for at, members in enumerate(every):
        elsewhere = [
            *possible,
            *(vrid for planned, plan in zip(every, plans) for vrid in _planned_vrids(planned, plan)),
        ]
        elsewhere += [vrid for later in every[at + 1 :] for vrid in _current_vrids(later)]
        plans.append(one(layout, [{**member, "elsewhere": elsewhere} for member in members]))
    return plans


def split(given: List[Member]) -> List[List[Member]]:
    """Return the members of each pair or cluster, in their order."""
    found: Dict[Tuple[str, ...], List[Member]] = {}
    for member in given:
        found.setdefault(tuple(member["members"]), []).append(member)
    return [sorted(members, key=lambda each: names.index(each["name"])) for names, members in found.items()]


def _disputed(layout: Layout, given: List[Member]) -> Faults:
    """Return which hosts two lists of members name."""
    lists = list(dict.fromkeys(tuple(member["members"]) for member in given))
    return [
        f"{MEMBERS[layout.prefix]}: {name} is in '{', '.join(one)}' and in '{', '.join(other)}'. Set it once for each "
        "group, so that all of its hosts have the same list."
        for one, other in itertools.combinations(lists, 2)
        for name in one
        if name in other
    ]


def _possible_vrids(layout: Layout, every: List[List[Member]], left_out: Iterable[Any]) -> List[Dict[str, Any]]:
    """Return the VRIDs that the pairs outside the run may have, which no host was asked for.

    A pair has what it got when it was set up: alone, or beside the pairs of this run.
    """
    here = {member["name"] for members in every for member in members}
    others = [_unread(*row) for row in left_out if row[0] in row[1] and here.isdisjoint(row[1])]
    beside = [vrid for members in every for vrid in _vrids(_vips_of_new(layout, members, []))]
    possible: List[Dict[str, Any]] = []
    for taken in ([], beside) if others else ():
        own: List[Dict[str, Any]] = []
        for members in split(others):
            own += _vrids(_vips_of_new(layout, members, [*taken, *own]))
        possible += own
    return possible


def _unread(name: str, members: Any, vips: Any, vrid: Any) -> Member:
    return {"name": name, "address": name, "members": members, "settings": {"vips": vips, "vrid": vrid}, "host": None}


def _vips_of_new(layout: Layout, members: List[Member], elsewhere: List[Dict[str, Any]]) -> List[Vip]:
    """Return the VIPs that a pair would get if it was new."""
    return planner.vips(layout, [{**member, "host": None, "elsewhere": elsewhere} for member in members])


def _vrids(vips: List[Vip]) -> List[Dict[str, Any]]:
    """Return the VRIDs of VIPs of whose links no more is known than that the VIPs are there."""
    return [
        {"vrid": vip.vrid, "family": vip.version, "by": vip.address, "networks": links.of_vips([vip.address])}
        for vip in vips
        if vip.vrid
    ]


def _planned_vrids(members: List[Member], plan: Plan) -> List[Dict[str, Any]]:
    return [{**each, "networks": _links(members, plan, each["by"]) or each["networks"]} for each in _vrids(plan.vips)]


def _current_vrids(members: List[Member]) -> Iterator[Dict[str, Any]]:
    """Yield what the members of a pair that is planned later have now, and may keep."""
    for member in members:
        host = member["host"] or {}
        for instance in host.get("instances", []):
            networks = links.subnets(host.get("addresses", [])).get(instance["interface"], [])
            for address in instance["addresses"]:
                family = 6 if ":" in address else 4
                there = networks or links.of_vips([address])
                yield {"vrid": instance["vrid"], "family": family, "by": address, "networks": there}


def _shared(members: List[Member], plan: Plan, others: List[Member], other: Plan) -> Iterator[str]:
    """Yield what two pairs or clusters have in common."""
    both = f"{_names(members)} and {_names(others)}"
    for vip, same in itertools.product(plan.vips, other.vips):
        if vip.address == same.address:
            yield f"{both} both have VIP {vip.address}: give each its own."
        elif (vip.vrid, vip.version) == (same.vrid, same.version) and links.overlap(
            _links(members, plan, vip.address), _links(others, other, same.address)
        ):
            vips = f"{vip.address} and {same.address}"
            yield f"{both} are on one link, and {vips} both have VRID {vip.vrid}: give one of them another."
    for (name, address), (another, same_address) in itertools.product(_sources(members, plan), _sources(others, other)):
        if address == same_address:
            yield f"{name} and {another} both have the address {address}: give each a host of its own (ansible_host)."


def _sender(layout: Layout, members: List[Member], plan: Plan) -> destinations.Sender:
    read = [{**member, "host": member["host"] or {"addresses": []}} for member in members]
    owned = destinations.owners(loops.known_of(plan.vips, read), layout.whole)
    return destinations.Sender(_names(members), plan.sends, owned)


def _links(members: List[Member], plan: Plan, vip: str) -> List[Any]:
    """Return the subnets on which the members advertise a VIP, as far as the hosts were read."""
    return [
        network
        for member in members
        for instance in plan.members[member["name"]].router.instances
        if vip in {address.partition("/")[0] for address in instance["addresses"]}
        for network in links.subnets((member["host"] or {}).get("addresses", [])).get(instance["interface"], [])
    ]


def _sources(members: List[Member], plan: Plan) -> List[Tuple[str, str]]:
    """Return the names of the members with the addresses that they send from, as far as the hosts were read."""
    return [
        (member["name"], source)
        for member in members
        for source in plan.members[member["name"]].router.sources
        if source in {info["address"] for info in _addresses_read(member)}
    ]


def _addresses_read(member: Member) -> List[Dict[str, Any]]:
    """Return a member's addresses without assumed ones, and without link-local ones, which every link has."""
    known = (member["host"] or {}).get("addresses", [])
    return [
        info for info in known if not info.get("assumed") and not ipaddress.ip_address(info["address"]).is_link_local
    ]


def _under_names(every: List[List[Member]], lines: List[List[str]]) -> List[str]:
    """Return the lines of each pair, under its members' names where there are several pairs."""
    if len(every) == 1:
        return lines[0]
    return [line for members, own in zip(every, lines) if own for line in (f"{_names(members)}:", *own)]


def _names(members: List[Member]) -> str:
    return ", ".join(member["name"] for member in members)
