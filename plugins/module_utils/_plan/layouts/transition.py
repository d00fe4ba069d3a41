# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What changes on the link when a plan takes the place of what its members run. Pure.

Two members that differ in one of these settings discard each other's Advertisements (RFC 9568 section 7.1, RFC 3768
section 7.1), so each of them holds the VIP. Such a change must reach all members in the same run.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Mapping, Set, Tuple

from ..._agent.config.schema import Faults
from ..._shared import held_back

Instance = Dict[str, Any]
MISSED = 3  # Active_Down_Interval is three intervals and Skew_Time, which is one at most, or a second in version 2
MISSED_AND_SKEW = MISSED + 1
PASS_LENGTH = 8  # all that VRRP compares, RFC 2338 section 5.3.10


def left_behind(name: str, running: List[Instance], planned: List[Instance], auth_pass: str) -> Faults:
    """Return a sentence for each setting with which a member outside `--limit` would stay alone.

    :param running: its instances, as `host_info` returns them; a member that runs none has nothing to disagree about
    :param planned: its instances in the plan
    :param auth_pass: the plan's password; '' if the plan makes a new one
    """
    if not running:
        return []
    changes = [*_vip_list(running, planned), *_settings(running, planned, auth_pass)]
    return [
        f"--limit leaves {name} out, and {change}: both sides would hold the VIP. Run it for all members."
        for change in dict.fromkeys(changes)
    ]


def _vip_list(running: List[Instance], planned: List[Instance]) -> Iterator[str]:
    before, after = _vips(running), _vips(planned)
    if before != after:
        yield f"its VIPs would stay {_listed(before)} instead of {_listed(after)}"


def _settings(running: List[Instance], planned: List[Instance], auth_pass: str) -> Iterator[str]:
    by_vip = {vip: instance for instance in running for vip in _vips([instance])}
    for instance in planned:
        for vip in sorted(_vips([instance])):
            if vip in by_vip:
                yield from _differences(vip, by_vip[vip], instance, auth_pass)


def _differences(vip: str, before: Instance, after: Instance, auth_pass: str) -> Iterator[str]:
    for key, label in (("vrid", "VRID"), ("version", "VRRP version")):
        if before[key] != after[key]:
            yield f"{vip} would keep {label} {before[key]} there instead of {after[key]}"
    if before["version"] == after["version"] == 2:  # version 3 has no password, and learns the interval
        if before["advert_interval"] != after["advert_interval"]:
            yield (
                f"{vip} would keep the advertisement interval {before['advert_interval']:g} s there "
                f"instead of {after['advert_interval']:g} s"
            )
        if auth_pass and before["auth_pass"][:PASS_LENGTH] != auth_pass[:PASS_LENGTH]:
            yield f"{vip} would keep another password there"


def _address_lists(running: List[Instance], planned: List[Instance]) -> Iterator[str]:
    """Return the Virtual Routers whose addresses change.

    keepalived before 2.3.3 discards an Advertisement with other addresses than its own; the agent does not.
    """
    before = {_key(instance): _vips([instance]) for instance in running}
    for instance in planned:
        there, own = before.get(_key(instance)), _vips([instance])
        if there is not None and there != own:
            yield f"VRID {instance['vrid']} would keep {_listed(there)} there instead of {_listed(own)}"


def _key(instance: Instance) -> Tuple[str, int, bool]:
    """Return what identifies a Virtual Router on its host."""
    return instance["interface"], instance["vrid"], any(":" in address for address in instance["addresses"])


def sole_router(
    running: Mapping[str, List[Instance]],
    planned: Mapping[str, List[Instance]],
    auth_pass: str,
    held: Mapping[str, int],
    keepalived: bool,
) -> str:
    """Return the member whose router alone runs while a setting changes that all must share; '' if none changes.

    The routers of the others are stopped meanwhile, so that no member with the old settings meets one with the new. It
    is the member that holds most VIPs: those do not move.

    :param running: the instances of each member now, as `host_info` returns them
    :param held: how many VIPs each member holds
    :param keepalived: whether it is the router of any member, before or after
    """
    runs = [name for name, instances in running.items() if instances]
    changes = [change for name in runs for change in _settings(running[name], planned[name], auth_pass)]
    if keepalived:
        changes += [change for name in runs for change in _address_lists(running[name], planned[name])]
    return max(runs, key=lambda name: held[name]) if changes and len(runs) > 1 else ""


def on_the_way(alone: str, running: List[Instance], planned: List[Instance]) -> List[str]:
    """Return sentences about the time between the old settings and the new ones.

    :param alone: the sole router; '' if none is needed
    :param running: its instances now, as `host_info` returns them
    :param planned: its instances in the plan
    """
    if not alone:
        return []
    lines = [
        f"On the way: settings change that all members share, so for some 10 s only {alone}'s router runs. "
        "No other member can take over then."
    ]
    vrids = {vip: instance["vrid"] for instance in running for vip in _vips([instance])}
    for instance in planned:
        interval = instance["advert_interval"]
        gone = MISSED * interval + (1 if instance["version"] == 2 else interval)
        for vip in sorted(_vips([instance])):
            if vrids.get(vip, instance["vrid"]) != instance["vrid"]:
                change = f"{vip} changes from VRID {vrids[vip]} to {instance['vrid']}"
                lines.append(f"On the way: {change} and is gone for at most {gone:g} s.")
    return lines


def given_up(members: List[Dict[str, Any]], vips: Collection[str]) -> List[str]:
    """Return a sentence for each VIP that a keepalived.conf of others has, and that goes with its replacement.

    :param members: as in `planner`
    :param vips: the addresses in the plan
    """
    return [
        f"{member['name']}: VIP {vip} is in its keepalived.conf but not in the plan, so this member gives it up."
        for member in members
        if member["host"].get("takeover", {}).get("keepalived", {}).get("keep")
        for vip in sorted(_vips(member["host"].get("instances", [])).difference(vips))
    ]


def members_let_go(members: List[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each member that a switchover or a maintenance holds back.

    :param members: as in `planner`
    """
    return [
        f"{member['name']}: {held_back.why(member['host']['held_back'])} "
        + ("--limit leaves it so." if member.get("outside_limit") else "It is started, and takes over what it prefers.")
        for member in members
        if member["host"].get("held_back")
    ]


def settle(running: List[Instance], planned: List[Instance], auth_pass: str) -> float:
    """Return for how many seconds a member's verification must last: a split shows after Active_Down_Interval.

    A member that runs what is planned has nothing to wait for.
    """
    after = [{**instance, "auth_pass": auth_pass} for instance in planned]
    if not running or sorted(map(_on_the_link, running)) == sorted(map(_on_the_link, after)):
        return 0
    return MISSED_AND_SKEW * max(instance["advert_interval"] for instance in [*running, *planned]) + 1


def _on_the_link(instance: Instance) -> Tuple[Any, ...]:
    """Return what a router shares with the others on its link; version 3 has no password."""
    password = instance["auth_pass"][:PASS_LENGTH] if instance["version"] == 2 else ""
    numbers = (instance["vrid"], instance["version"], float(instance["advert_interval"]))
    return (*numbers, password, sorted(_vips([instance])), sorted(instance["peers"]))


def _vips(instances: List[Instance]) -> Set[str]:
    return {address.partition("/")[0] for instance in instances for address in instance["addresses"]}


def _listed(vips: Set[str]) -> str:
    return ", ".join(sorted(vips)) or "none"


def split_by_limit(
    members: List[Dict[str, Any]], planned: Mapping[str, List[Dict[str, Any]]], auth_pass: str
) -> Faults:
    """Return the sentences of all members outside `--limit`.

    :param members: as in `planner`
    :param planned: the instances of each member in the plan
    """
    return [
        sentence
        for member in members
        if member.get("outside_limit")
        for sentence in left_behind(
            member["name"], member["host"].get("instances", []), planned[member["name"]], auth_pass
        )
    ]
