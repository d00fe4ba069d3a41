# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of an IPI-like cluster: its own nodes carry the API VIP and the ingress VIPs.

Pure, as `pair`: a member is ``{name, master, settings, host}``. Every port, priority and check comes from a preset
(`ipi_presets`), and each can be said otherwise.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults, read
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import (
    engine_choice,
    ipi_cluster,
    ipi_presets,
    ipi_services,
    nft_guard,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import members as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.engine_choice import Choice
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_cluster import Cluster
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_presets import PRESETS, Check
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.members import Member, Vip
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import url_checks
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.instances import auth_pass_faults, read_instances
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.variables import as_role_variables
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, events

OWN = ("interface", "engine")  # what each node may say for itself; all else must be the same everywhere
DOWN = "haproxy_down"
ROUTER_PORTS = (80, 443)
# Milliseconds: the connections that a server has when it dies are lost; each new one is passed to another server.
LOST_WITH_A_SERVER = 60


def plan(members: List[Member]) -> Dict[str, Any]:
    """Return the cluster's plan, if it holds in every single failure.

    :returns: ``{faults, warnings, vips, members: {NAME: {engine, instances, scripts, files, peers, interfaces,
        services, monitors}}, track, engines, targets, watched, advert_interval, outages, table}``; with faults all else
        is empty
    """
    drafted = draft(members)
    if drafted["faults"]:
        return drafted
    foreseen = forecast.forecast(drafted)
    if foreseen["faults"]:
        return {**_EMPTY, "faults": [as_role_variables(fault, "ipi") for fault in foreseen["faults"]]}
    outages = foreseen["outages"]
    return {**drafted, "outages": outages, "table": forecast.table(drafted, outages)}


_EMPTY: Dict[str, Any] = {
    "warnings": [],
    "vips": [],
    "members": {},
    "track": {},
    "turns": [],
    "engines": [],
    "targets": [],
    "watched": {},
    "outages": [],
    "table": [],
}


def draft(members: List[Member]) -> Dict[str, Any]:
    """Return the plan of whatever can be read, whether it would hold or not; its outages are not known yet."""
    faults = _members.disagreements(members, OWN, "ipi")
    settings = read(ipi_cluster.SETTINGS, members[0]["settings"], "ipi", faults) if members else {}
    preset, renamed = ipi_presets.called(settings.get("preset", ""))
    settings = {**settings, "preset": preset}
    masters = [member["name"] for member in members if member["master"]]
    if len(masters) < 2:
        return _refused([*faults, f"ipi_masters has {len(masters)} members: two or more are needed, three are usual."])
    sketch = ipi_cluster.read_cluster(members, settings, masters, faults)
    services = ipi_services.services(sketch, masters, faults)
    choices = _members.engines(members, "ipi", faults)
    listening = [*services, *ipi_services.monitors(sketch)]
    faults += _members.host_faults([m for m in members if m["master"]], listening, choices)
    faults += _members.host_faults([m for m in members if not m["master"]], [], choices)
    faults += [fault for member in members for fault in _missing_programs(member, sketch, choices)]
    faults += _members.vrrp_conflicts(members, sketch.vips, sketch.seats)
    faults += auth_pass_faults(settings["auth_pass"], "ipi_auth_pass")
    faults += nft_guard.faults(settings["machine_networks"], "ipi_machine_networks")
    warnings = renamed + ipi_presets.port_warnings(sketch.preset.ports) + _failover_races(sketch, faults)
    if faults:
        return _refused(faults)
    planned = {member["name"]: _member(member, sketch, services, choices[member["name"]]) for member in members}
    carrying = {name: choices[name] for name in planned if _carries(name, sketch)}
    turns = engine_choice.migration_order(carrying, _members.held_vips(members, sketch.vips))
    for name, member in planned.items():
        faults += read_instances(member["instances"], f"{name}: instances")[1]
    if faults:
        return _refused(faults)
    return {
        **_EMPTY,
        "faults": [],
        "warnings": warnings,
        "vips": [{**vip._asdict(), "name": vip.name} for vip in sketch.vips],
        "members": planned,
        "track": {"scripts": [script for member in planned.values() for script in member["scripts"]]},
        "turns": turns,
        "engines": engine_choice.table(carrying, turns),
        "targets": _targets(sketch),
        "watched": _watched(sketch),
        "redirect": _redirect(sketch),
        "guard": nft_guard.ruleset(settings["machine_networks"]),
        "advert_interval": settings["advert_interval"],
    }


def _refused(faults: Faults) -> Dict[str, Any]:
    return {**_EMPTY, "faults": list(dict.fromkeys(as_role_variables(fault, "ipi") for fault in faults))}


def _failover_races(sketch: Cluster, faults: Faults) -> List[str]:
    """keepalived must not move the VIP before haproxy has seen the same, or it arrives where nothing is better."""
    noticed = ipi_presets.detection_time(sketch.preset)
    found = [
        f"{check.name} sees a dead API server after {check.interval * check.fall:g} s and haproxy after {noticed:g} s, "
        "so the VIP would move to a member that still sends requests there: shorten ipi_server_check."
        for check in sketch.preset.api_checks
        if check.sees_local_api and check.interval * check.fall <= noticed
    ]
    if sketch.settings["preset"] == "ocp45":  # which is asked for as it was
        return found
    faults += found
    return []


def _carries(name: str, sketch: Cluster) -> List[Vip]:
    return [vip for vip in sketch.vips if name in vip.order]


def _missing_programs(member: Member, sketch: Cluster, choices: Dict[str, Choice]) -> Faults:
    """What HAProxy and keepalived bring along as packages, the agent must find: it installs nothing."""
    name, missing = member["name"], member["host"].get("missing_programs", [])
    if choices[name].engine != engines.AGENT:
        return []
    found = []
    if member["master"] and "nft" in missing:
        found.append("nft is missing, which passes the API VIP's port on to the balancer: install nftables")
    for script in _scripts(name, sketch):
        if "curl" in missing and not url_checks.question(script["any_of"]):
            urls = ", ".join(sum(script["any_of"], []))
            found.append(f"curl is missing, which the check {script['name']} needs to ask {urls}: install curl")
    return [f"{name}: {what}, because with the engine agent nothing is downloaded." for what in found]


def _member(member: Member, sketch: Cluster, services: List[Dict[str, Any]], choice: Choice) -> Dict[str, Any]:
    name, master, engine = member["name"], member["master"], choice.engine
    mine = _carries(name, sketch)
    instances = [_instance(name, vip, sketch) for vip in mine]
    events = master and sketch.preset.events
    own = ipi_services.for_haproxy(services) if engine == engines.NATIVE else services
    return {
        "master": master,
        "engine": engine,
        "replaces": choice.replaces,
        "replaced_programs": list(engines.REPLACED[choice.replaces]),
        "instances": instances,
        "scripts": _scripts(name, sketch),
        "files": [{"name": DOWN, "path": sketch.settings["down_file"]}] if events else [],
        "down_file": sketch.settings["down_file"] if events else "",
        "peers": sorted({peer for instance in instances for peer in instance["peers"]}),
        "interfaces": sorted({instance["interface"] for instance in instances}),
        "services": own if master else [],
        "monitors": ipi_services.monitors(sketch) if master else [],
        "balancer": engines.UNITS[engine].balancer,
        "ports": _ports(name, sketch, master),
        "seen": _to_be_seen(sketch, engine, services if master else [], bool(mine)),
        "timeouts": sketch.preset.timeouts,
        "stats_port": sketch.preset.ports["stats"],
    }


def _ports(name: str, sketch: Cluster, master: bool) -> List[int]:
    """What clients come to on this node."""
    api = [sketch.settings["api_port"], sketch.preset.ports["lb"]] if master else []
    ingress = list(ROUTER_PORTS) if any(name in vip.order for vip in sketch.ingress.vips) else []
    return [*api, *ingress]


def _to_be_seen(sketch: Cluster, engine: str, services: List[Dict[str, Any]], carries: bool) -> Dict[str, Any]:
    """What `layout_info` is to find on this node."""
    balancer, router = engines.UNITS[engine]
    return {
        "vips": [{"address": vip.address} for vip in sketch.vips],
        "services": [*services, *ipi_services.monitors(sketch)] if services else [],
        "targets": _targets(sketch),
        "units": [*([balancer] if services else []), *([router] if carries else [])],
        "programs": list(engines.PROGRAMS[engine]),
    }


def _checks(vip: Vip, sketch: Cluster) -> List[Check]:
    """A shard's own list, or the preset's: a VIP follows its own routers only."""
    if vip in sketch.api.vips:
        return list(sketch.preset.api_checks)
    own = sketch.ingress.checks.get(vip.name)
    if own is None:
        return list(sketch.preset.ingress_checks)
    usual = sketch.preset.ingress_checks[0]
    return [
        usual._replace(name=f"chk_{vip.name}_{at + 1}".lower(), any_of=((url,),), weight=0)
        for at, url in enumerate(own)
    ]


def _scripts(name: str, sketch: Cluster) -> List[Dict[str, Any]]:
    """The checks of every VIP that a node may carry, each once."""
    checks = {check.name: check for vip in _carries(name, sketch) for check in _checks(vip, sketch)}
    return [_script(check, sketch) for check in checks.values()]


def _script(check: Check, sketch: Cluster) -> Dict[str, Any]:
    settings, preset = sketch.settings, sketch.preset
    places = {
        **preset.ports,
        "api": settings["api_port"],
        "router": settings["router_port"],
        **{f"{name}_path": path for name, path in preset.paths.items()},
    }
    return {
        "name": check.name,
        "any_of": ipi_presets.asked(check, places),
        "interval": check.interval,
        "timeout": check.interval,
        "rise": check.rise,
        "fall": check.fall,
    }


def _instance(name: str, vip: Vip, sketch: Cluster) -> Dict[str, Any]:
    settings, preset = sketch.settings, sketch.preset
    seat, is_api = sketch.seats[name][vip.address], vip in sketch.api.vips
    base = preset.api_priority if is_api else preset.ingress_priority
    version = 3 if vip.version == 6 else settings["vrrp_version"]
    role = "api" if is_api else "ingress"
    named = f"{sketch.api.cluster}_{role}_vip"[:8] if preset.named_passwords and version == 2 else ""
    return {
        "name": vip.name,
        "state": "BACKUP",
        "interface": seat.interface,
        "vrid": vip.vrid,
        "version": version,
        "priority": _priority(base, len(vip.order), vip.order.index(name)),
        "advert_interval": settings["advert_interval"],
        "preempt": preset.preempt,
        "preempt_delay": 0,
        "auth_pass": named,
        "multicast": preset.multicast,
        "source": seat.address,
        "peers": [sketch.seats[other][vip.address].address for other in vip.order if other != name],
        "addresses": [vip.with_prefix],
        "track_scripts": [{"name": check.name, "weight": check.weight} for check in _checks(vip, sketch)],
        "track_files": [{"name": DOWN, "weight": 0}] if is_api and preset.events else [],
        "notify": None,
    }


def _priority(base: int, count: int, rank: int) -> int:
    """Where a preset gives everybody the same, the addresses decide."""
    return base or _members.priorities(count)[rank]


def _targets(sketch: Cluster) -> List[List[Any]]:
    api = [[vip.address, sketch.settings["api_port"]] for vip in sketch.api.vips]
    return api + [[vip.address, port] for vip in sketch.ingress.vips for port in ROUTER_PORTS]


def _watched(sketch: Cluster) -> Dict[str, Any]:
    """Which VIPs live and die with which program."""
    blind = [check.name for check in sketch.preset.api_checks if not check.sees_haproxy]
    at_ease = not any(check.sees_local_api for check in sketch.preset.api_checks)
    return {
        "haproxy": {
            "instances": [vip.name for vip in sketch.api.vips],
            "fatal": [events.HAPROXY_KILLED, events.HAPROXY_STOPPED],
            "harmless": {events.HAPROXY_RELOADED: 0, **({"api_failing": LOST_WITH_A_SERVER} if at_ease else {})},
            "blind_trackers": blind,
        },
        "router": {
            "instances": [vip.name for vip in sketch.ingress.vips],
            "fatal": ["router_stopped", *(["router_draining"] if ipi_presets.fails_on_draining(sketch.preset) else [])],
            "harmless": {},
        },
    }


def _redirect(sketch: Cluster) -> Dict[str, Any]:
    vips = [vip.address for vip in sketch.api.vips]
    return {"vips": vips, "port": sketch.settings["api_port"], "to_port": sketch.preset.ports["lb"]}


def side_by_side(members: List[Member]) -> List[str]:
    """Return a table of what each preset costs these members, event by event."""
    plans = {}
    for name in PRESETS:
        chosen = [{**member, "settings": {**member["settings"], "preset": name}} for member in members]
        plans[name] = plan(chosen)
    rows: Dict[Any, Dict[str, str]] = {}
    for name, found in plans.items():
        for line in found["outages"]:
            rows.setdefault((line["vip"], line["event"]), {})[name] = f"{line['outage_ms']} ms"
    head = f"{'VIP':<24} {'event':<20}" + "".join(f"{name:>12}" for name in plans)
    lines = [
        f"{vip:<24} {event.replace('_', ' '):<20}" + "".join(f"{cells.get(name, '-'):>12}" for name in plans)
        for (vip, event), cells in rows.items()
    ]
    refused = [f"{name} is refused: {fault}" for name, found in plans.items() for fault in found["faults"]]
    return [head, *lines, *refused]
