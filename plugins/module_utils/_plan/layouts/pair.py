# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a MASTER/BACKUP pair: from what the user wrote and what the hosts said to the model of each member.

Pure: the same members give the same plan. Faults are collected, never raised, so that a user sees all of them at once.

A member is ``{name, settings, host}``: the role's variables as this member sees them (without the prefix ``pair_``),
and what the module `host_info` found there.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    integer,
    list_of,
    number,
    read,
    text,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import engine_choice
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import members as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.pair_vips import Vip, read_vips
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.subnets import Placement
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.instances import auth_pass_faults, read_instances
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import ANY, read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.variables import as_role_variables
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

OWN = ("interface", "engine")  # what each member may say for itself; all else must be the same everywhere
ALIVE = "haproxy_alive"  # the script: killall -0 haproxy
DOWN = "haproxy_down"  # the track file that haproxy's unit writes

SETTINGS = {
    "vips": Field(anything, []),
    "vrid": Field(integer(1, 255, "a VRID")),
    "masters": Field(anything, []),
    "infra_nodes": Field(anything, []),
    "services": Field(anything),
    "interface": Field(text, ""),
    "engine": Field(text, engines.AUTO),  # each member's is read by itself
    "auth_pass": Field(text, "", secret=True),
    "vrrp_version": Field(integer(2, 3, "a VRRP version"), 2),
    "advert_interval": Field(number(0.01, 255, " seconds"), 1),
    "preempt": Field(boolean, True),
    "preempt_delay": Field(number(0, 1000, " seconds"), 0),
    "priorities": Field(list_of(integer(1, 254, "a priority")), []),
    "multicast": Field(boolean, False),
    "track_weight": Field(integer(-253, 253, "a weight"), 0),
    "track_interval": Field(number(0.1, 3600, " seconds"), 2),
    "track_fall": Field(integer(1, 100), 1),
    "track_rise": Field(integer(1, 100), 1),
    "track_events": Field(boolean, True),
    "down_file": Field(text, "/run/haproxy.down"),
    "notify": Field(text, ""),
}


def plan(members: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the pair's plan, if it holds in every single failure.

    :returns: ``{faults, vips, services, members: {NAME: {instances, peers, interfaces, engine, track, units,
        programs, replaces, replaced_programs}}, track, turns, engines, targets, outages, table}``; with faults
        everything else is empty
    """
    drafted = draft(members)
    if drafted["faults"]:
        return drafted
    foreseen = forecast.forecast(drafted)
    if foreseen["faults"]:
        return _refused([as_role_variables(fault, "pair") for fault in foreseen["faults"]])
    outages = foreseen["outages"]
    return {**drafted, "outages": outages, "table": forecast.table(drafted, outages)}


def draft(members: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the plan of whatever can be read, whether it would hold or not; its outages are not known yet."""
    names = [member["name"] for member in members]
    faults = _members.disagreements(members, OWN, "pair")
    settings = read(SETTINGS, members[0]["settings"], "pair", faults) if members else {}
    if len(members) < 2:
        return _refused([*faults, f"The pair has {len(members)} member ({', '.join(names)}): two or more are needed."])
    vips = read_vips(settings, names, _members.existing(members), faults)
    services = _services(settings, vips, faults)
    seats = _members.placements(members, vips, "pair", faults)
    priorities = _priorities(settings, len(names), faults)
    faults.extend(auth_pass_faults(settings["auth_pass"], "pair_auth_pass"))
    choices = _members.engines(members, "pair", faults)
    faults.extend(_members.host_faults(members, services, choices))
    faults.extend(_members.vrrp_conflicts(members, vips, seats))
    if faults:
        return _refused([as_role_variables(fault, "pair") for fault in faults])
    planned = {
        name: {**_member(name, vips, priorities, settings, seats), **_engine(settings, choices[name])} for name in names
    }
    turns = engine_choice.migration_order(choices, _members.held_vips(members, vips))
    for name in names:
        faults.extend(read_instances(planned[name]["instances"], f"{name}: instances")[1])
    if faults:
        return _refused(faults)
    return {
        "faults": [],
        "vips": [{**vip._asdict(), "name": vip.name} for vip in vips],
        "services": services,
        "members": planned,
        "track": _track(settings, engines.NATIVE),
        "turns": turns,
        "engines": engine_choice.table(choices, turns),
        "targets": targets(vips, services),
        "advert_interval": settings["advert_interval"],
        "outages": [],
        "table": [],
    }


def _refused(faults: Faults) -> Dict[str, Any]:
    return {
        "faults": list(dict.fromkeys(faults)),
        "vips": [],
        "services": [],
        "members": {},
        "track": {},
        "turns": [],
        "engines": [],
        "targets": [],
        "outages": [],
        "table": [],
    }


def _services(settings: Dict[str, Any], vips: List[Vip], faults: Faults) -> List[Dict[str, Any]]:
    """The user's services, or the defaults: 8443 to the masters, 80 and 443 to the infra nodes."""
    given, place = settings["services"], "pair_services"
    if given is None:
        wanted = (("masters", 8443), ("infra_nodes", 80), ("infra_nodes", 443))
        empty = [f"pair_{group}" for group in ("masters", "infra_nodes") if not settings[group]]
        if empty:
            faults.append(f"{' and '.join(empty)} is empty: name the servers' addresses, or set pair_services.")
            return []
        given = [
            {"name": f"{group}-{port}", "port": port, "balance": "source", "servers": settings[group]}
            for group, port in wanted
        ]
    services, wrong = read_services(given, place)
    faults.extend(wrong)
    if any(vip.version == 6 for vip in vips):
        for service in services:
            if service["bind"] == [ANY]:
                service["bind"] = [ANY, "::"]
    return services


def _priorities(settings: Dict[str, Any], count: int, faults: Faults) -> List[int]:
    """By rank: the first entry is for whoever comes first for a VIP."""
    given: List[int] = settings["priorities"]
    if given and len(given) != count:
        faults.append(f"pair_priorities has {len(given)} entries for {count} members: one for each, best first.")
    if given != sorted(given, reverse=True):
        faults.append(f"pair_priorities is {given}: the first is the holder's and must be the highest.")
    return given or _members.priorities(count)


def _heeds_events(settings: Dict[str, Any]) -> bool:
    """A weight is for the poll alone: the file and the poll would count the same death twice."""
    return bool(settings["track_events"] and not settings["track_weight"])


def _engine(settings: Dict[str, Any], choice: engine_choice.Choice) -> Dict[str, Any]:
    """What is another thing with another engine."""
    return {
        "engine": choice.engine,
        "track": _track(settings, choice.engine),
        "units": list(engines.UNITS[choice.engine]),
        "programs": list(engines.PROGRAMS[choice.engine]),
        "replaces": choice.replaces,
        "replaced_programs": list(engines.REPLACED[choice.replaces]),
    }


def _track(settings: Dict[str, Any], engine: str) -> Dict[str, Any]:
    """The event (a file written by the balancer's own unit) and, behind it, the poll of keepalived's script."""
    script = {
        "name": ALIVE,
        "command": engines.ALIVE[engine],
        "interval": settings["track_interval"],
        "timeout": settings["track_interval"],
        "rise": settings["track_rise"],
        "fall": settings["track_fall"],
    }
    events = _heeds_events(settings)
    return {
        "scripts": [script],
        "files": [{"name": DOWN, "path": settings["down_file"]}] if events else [],
        "down_file": settings["down_file"] if events else "",
    }


def _member(
    name: str,
    vips: List[Vip],
    priorities: List[int],
    settings: Dict[str, Any],
    seats: Dict[str, Dict[str, Placement]],
) -> Dict[str, Any]:
    instances = [_instance(name, vip, priorities, settings, seats) for vip in vips]
    return {
        "instances": instances,
        "peers": sorted({peer for instance in instances for peer in instance["peers"]}),
        "interfaces": sorted({instance["interface"] for instance in instances}),
    }


def _instance(
    name: str,
    vip: Vip,
    priorities: List[int],
    settings: Dict[str, Any],
    seats: Dict[str, Dict[str, Placement]],
) -> Dict[str, Any]:
    rank = vip.order.index(name)
    seat = seats[name][vip.address]
    # A member that may be told to wait, or not to preempt at all, has to start as Backup.
    leads = rank == 0 and settings["preempt"] and not settings["preempt_delay"]
    return {
        "name": vip.name,
        "state": "MASTER" if leads else "BACKUP",
        "interface": seat.interface,
        "vrid": vip.vrid,
        "version": 3 if vip.version == 6 else settings["vrrp_version"],
        "priority": priorities[rank],
        "advert_interval": settings["advert_interval"],
        "preempt": settings["preempt"],
        "preempt_delay": settings["preempt_delay"],
        "multicast": settings["multicast"],
        "source": seat.address,
        "peers": [seats[other][vip.address].address for other in vip.order if other != name],
        "addresses": [vip.with_prefix],
        "track_scripts": [{"name": ALIVE, "weight": settings["track_weight"]}],
        "track_files": [{"name": DOWN, "weight": 0}] if _heeds_events(settings) else [],
        "notify": settings["notify"] or None,
    }


def targets(vips: List[Vip], services: List[Dict[str, Any]]) -> List[List[Any]]:
    """Every service through every VIP it is bound to: ``[address, port]``."""
    found = []
    for vip in vips:
        wildcard = "::" if vip.version == 6 else ANY
        for service in services:
            if wildcard in service["bind"] or vip.address in service["bind"]:
                found.append([vip.address, service["port"]])
    return found
