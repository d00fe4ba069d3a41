# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known before a plan is made: the settings of the members, what their layout has read, and their engines.

Pure. Faults are collected, never raised, so that a user sees all of them at once.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..._agent.config.schema import Faults, Field, boolean, number, one_of, read, shown
from ..._shared import engines
from ..bgp import announcing
from ..bgp import settings as reach
from ..change import delivery
from ..change.delivery import Delivery
from ..members import broadcast_domain, identity, loops, silent
from ..members.engine_choice import Choice
from ..members.hosts import (
    Member,
    choose_engines,
    disagreements,
    held_vips,
    host_faults,
    served_elsewhere,
    unfit_files,
    vrrp_conflicts,
)
from ..members.subnets import placeholder_host
from ..model import agent, destinations, values
from ..model.instances import shared_faults
from ..model.variables import read_given
from . import resolver
from .layout import Draft, Layout

INTERFACES = ("interface", "vrrp_interface")
PER_MEMBER = (*INTERFACES, "engine", *reach.PER_MEMBER)  # the settings that may differ between members
# What the tasks of the layouts read; each member has its own.
TASKS = {
    "state": Field(one_of("present", "absent"), "present"),
    "listen": Field(number(0, 3600, " seconds"), 1.5),
    "firewall": Field(boolean, True),
    "verify": Field(boolean, True),
    "break_lock": Field(boolean, False),
    "accept_split": Field(boolean, False),
    "accept_cut": Field(boolean, False),
    "accept_routed_only": Field(boolean, False),
    "downgrade": Field(boolean, False),
    "retired": Field(values.words, []),
    "undo_after": Field(number(0, 3600, " seconds"), 35),
}


class Judged(NamedTuple):
    """What is known before a plan is made: the members with their settings, what the layout read, and the engines."""

    members: List[Member]
    settings: Dict[str, Any]
    found: Draft
    choices: Dict[str, Choice]
    delivery: Delivery
    without_effect: List[str]  # a sentence for each variable that nothing reads with this reach

    @property
    def held(self) -> Dict[str, int]:
        """How many VIPs each member holds now, also of those that the plan drops."""
        return {name: len(vips) for name, vips in held_vips(self.members, self.found.vips).items()}


def judge(layout: Layout, given: List[Member], faults: Faults) -> Optional[Judged]:
    """Return what was read, and append what is wrong with it; None where it is no layout at all."""
    reached = [member["address"] for member in given if isinstance(member.get("address"), str)]
    members = [_complete(layout, rank, member, reached) for rank, member in enumerate(silent.complete(given))]
    faults += disagreements(members, PER_MEMBER, layout.prefix)
    settings = read(layout.schema, members[0]["settings"] if members else {}, layout.prefix, faults)
    without_effect = reach.without_effect(settings, layout.schema, layout.vips, layout.prefix)
    settings = reach.without_vrrp(settings, layout.schema)
    found = layout.read(members, settings, faults)
    if found is None:
        return None
    delivered = delivery.of(settings, layout.prefix, faults)
    choices = _choices(members, delivered, layout.prefix, faults)
    faults += delivery.faults(settings, members, delivered, choices)
    faults += destinations.faults(found.sends, destinations.owners(loops.known_of(found.vips, members), layout.whole))
    faults += shared_faults(settings, [vip.version for vip in found.vips], layout.prefix)
    faults += _host_faults(layout.prefix, members, found, choices, delivered)
    for member in members:
        faults += unfit_files(member, layout.prefix, served_elsewhere(member, members))
    return Judged(members, settings, found, choices, delivered, without_effect)


def task_faults(layout: Layout, given: List[Member]) -> Faults:
    """Return what is wrong with the members' names, with what only tasks read, and with what stands for a host."""
    faults = [*identity.of_members(given, layout.prefix), *silent.faults(given)]
    of_host = {key: layout.schema[key] for key in INTERFACES if key in layout.schema}
    for member in given:
        settings = member["settings"]
        read_given(TASKS, settings, layout.prefix, faults)
        read(of_host, {key: settings.get(key) for key in of_host}, layout.prefix, faults)
        address = member.get("address", "")
        if not isinstance(address, str):
            faults.append(f"{member['name']}: ansible_host is {shown(address)}: an address or a name is required.")
    return faults


def _choices(members: List[Member], delivered: Delivery, prefix: str, faults: Faults) -> Dict[str, Choice]:
    """Return what each member runs, and append what is wrong with it."""
    if delivered.is_pod:
        return delivery.engines(members, prefix, faults)
    return delivery.with_units(members, choose_engines(members, prefix, faults))


def _host_faults(
    prefix: str, members: List[Member], found: Draft, choices: Mapping[str, Choice], delivered: Delivery
) -> Faults:
    """Return what the hosts, and their engines, have against the plan. The programs of pods are in their images."""
    faults = identity.of_addresses(members, found.vips, found.placements)
    faults += identity.shared(members, found.senders) if found.senders else []
    if found.bgp:
        names = [member["name"] for member in members if found.direct and found.direct.server(member["name"])]
        faults += announcing.as_servers(names, prefix)
    if found.has_vrrp:
        faults += broadcast_domain.faults(members, found.vips, found.placements, f"{prefix}_interface", found.mends)
        if found.senders:
            faults += broadcast_domain.faults(members, found.vips, found.senders, f"{prefix}_vrrp_interface", {})
        faults += vrrp_conflicts(members, found.vips, found.advertising)
    faults += resolver.abandoned(found.resolver, members, [vip.address for vip in found.vips], prefix)
    faults += resolver.unheard(found.resolver, members)
    for member in members:
        choice = choices[member["name"]]
        faults += host_faults(member, found.listeners(member["name"]), choice)
        faults += [] if delivered.is_pod else found.missing_programs(member, choice.engine)
        if choice.engine == engines.AGENT:
            services = found.balancer(member["name"], choice.engine).services
            faults += [f"{member['name']}: {fault}" for fault in agent.beyond(services, prefix)]
    return faults


def _complete(layout: Layout, rank: int, member: Member, reached: List[str]) -> Member:
    """Return a member with the settings of its layout alone, and with a placeholder for a host that was not read."""
    settings = {key: value for key, value in member["settings"].items() if key in layout.schema}
    for key in INTERFACES:
        if key == "interface" or key in settings:
            settings[key] = settings[key] if isinstance(settings.get(key), str) else ""  # which `task_faults` judges
    host = member["host"]
    if host is None:
        lists = [settings.get(name) for name in layout.vips]
        vips = [vip for some in lists if isinstance(some, list) for vip in some]
        names = [settings.get(key, "") for key in INTERFACES]
        host = placeholder_host(vips, member["address"], rank, *names, taken=reached)
    return {**member, "settings": settings, "host": host}
