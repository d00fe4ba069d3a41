# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a layout needs to know of a host before it plans: what `host_info` returns, without the firewall and the link.

``asked`` are the parameters of that module everywhere.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Tuple

from ..._agent.keepalived import conf as keepalived_conf
from ..._shared import definitions, mark, platforms
from ..._shared.engines import AGENT, FRR, KEEPALIVED, NATIVE, PODS
from ..._shared.pods import NAMES as STATIC_PODS
from .. import records
from . import (
    asking,
    beside,
    expiry,
    facts,
    followed,
    held_back,
    in_force,
    named_files,
    obstacles,
    on_disk,
    pod_programs,
    pods,
    processes,
    resolver,
    rivals,
    served_certificates,
    server_names,
    speakers,
    static_pods,
    takeover,
    unrestricted_tls,
)
from .reader import Reader

Asked = Mapping[str, Any]
Found = Dict[str, Any]


def read(asked: Asked, reader: Reader) -> Found:
    """Read a host. What keeps it from being a balancer is a problem, a sentence, and not an error."""
    addresses = reader.addresses()
    routers = _instances(asked, reader)
    members = facts.members(reader.text(asked["members_record"])) if asked["members_record"] else {}
    vips = facts.vip_addresses([*asked["vips"], *facts.addresses_of_routers(members, routers)])
    others, of_others, disabled = _others(asked, reader)
    answering, unanswered = _answering(reader, vips, asked["wait"], addresses or [])
    family = platforms.os_family(reader.text(facts.OS_RELEASE))
    deployed = _deployed(asked, reader)
    return {
        **deployed,
        "os_family": family,
        "addresses": addresses or [],
        "on_loopback": reader.on_loopback(),
        "listeners": facts.listeners(),
        "answering": answering,
        "missing_programs": [name for name in asked["programs"] if not reader.find(name)],
        "unfit": named_files.unfit(asked["named"]),
        "served_files": expiry.served(),
        "unrestricted_tls": unrestricted_tls.read(),
        "expiring": expiry.of_host(named_files.certificate_paths(asked["named"]), named_files.contents(asked["named"])),
        "resolved": server_names.resolved(asked["servers"]),
        "uncovered": _uncovered(asked),
        "files": {path: file._asdict() for path, file in on_disk.read(reader, asked["read_files"]).items()},
        "package_lists_fresh": reader.package_lists_are_fresh(),
        "instances": routers,
        "checks": checks(asked, reader),
        "asking": asking.read(reader, asked, [each["address"] for each in addresses or []], deployed["active_units"]),
        "script_user": asked["named"].get("script_user") or named_files.ROOT,
        "keepalived_version": reader.version(KEEPALIVED) if KEEPALIVED in asked["configs"] else "",
        "takeover": others,
        "static_pods": disabled,
        "members": members,
        "followed": followed.read(reader),
        "not_following": beside.not_following(reader),
        "plane": beside.plane(reader),
        "named": resolver.named(reader),
        "stale": in_force.unloaded_units(reader, asked["loaded"]),
        "held_back": held_back.in_force(reader),
        "selinux": facts.has_selinux(),
        "problems": [*of_others, *_lacking(asked, family, addresses is None), *unanswered],
    }


def _lacking(asked: Asked, family: str, lacks_ip: bool) -> List[str]:
    """Return what this collection needs of a host and this one lacks."""
    found = []
    if asked["runs_units"] and not facts.has_systemd():
        found.append(f"systemd does not run here: it is to run {', '.join(asked['runs_units'])}.")
    if lacks_ip:
        found.append("the program ip is missing: install iproute2 (Debian) or iproute (RedHat).")
    if platforms.family_problem(family):
        found.append(platforms.family_problem(family))
    return found


def _answering(
    reader: Reader, vips: List[str], wait: float, addresses: List[Dict[str, Any]]
) -> Tuple[Dict[str, List[str]], List[str]]:
    """Return the hardware addresses that answer for VIPs on the link, and why nobody could be asked."""
    try:
        return reader.answering(vips, wait, addresses), []
    except PermissionError:
        return {}, ["there is no permission to open raw sockets: use become, or give the container NET_RAW."]


def _uncovered(asked: Asked) -> List[Dict[str, str]]:
    """Return what the certificates of the API servers lack: names, and the VIPs."""
    names = [*map(str, asked["api"].get("names", [])), *facts.vip_addresses(asked["vips"])]
    return served_certificates.uncovered(asked["api"].get("servers"), names)


def _others(asked: Asked, reader: Reader) -> Tuple[Found, List[str], List[Dict[str, str]]]:
    """Return what others have set up here, by program, the problems with it, and the static pods to disable."""
    configs = asked["configs"]
    running = processes.named({*configs, *rivals.PROGRAMS, *speakers.PROGRAMS}) if configs else []
    found = takeover.read(reader, configs, running, facts.packages(reader.text(asked["packages_record"])))
    problems = [problem for program in found.values() for problem in program["problems"]]
    if FRR in configs:
        problems += speakers.problems(running, facts.listeners())
    if KEEPALIVED not in configs:
        return found, problems, []
    is_openshift = os.path.isdir(rivals.OPENSHIFT_KEEPALIVED)
    every = rivals.rivals(running, facts.vip_addresses(asked["vips"]), is_openshift, static_pods.manifest)
    disabled = [rival for rival in every if asked["takes_over"] and rival.manifest]
    problems += [rivals.problem(rival, asked["take_over_variable"]) for rival in every if rival not in disabled]
    problems += static_pods.kept_twice([pod.manifest for pod in disabled])
    return found, problems, [{"program": pod.program, "manifest": pod.manifest} for pod in disabled]


def _instances(asked: Asked, reader: Reader) -> List[Dict[str, Any]]:
    """Return the VRRP instances of the router's unit or pod: of the one that is to run, where both are there."""
    of_unit, of_pod = _of_units(asked, reader), pod_programs.instances(reader)
    found = (of_pod or of_unit) if pods.enabled([PODS.router]) else (of_unit or of_pod)
    return found if asked["with_auth_pass"] else [{**instance, "auth_pass": ""} for instance in found]


def _of_units(asked: Asked, reader: Reader) -> List[Dict[str, Any]]:
    """Return the VRRP instances of both engines' configurations. Of two with the same name, keepalived's counts."""
    path = asked["keepalived_config"]
    text = reader.text(path)
    # What a package brings is an example, and no pair that lives.
    is_example = not mark.is_marked(text) and reader.is_as_shipped(path)
    native = [] if is_example else keepalived_conf.instances(text)
    names = [instance["name"] for instance in native]
    agents = facts.agent_instances(reader.text(asked["agent_config"]))
    return native + [instance for instance in agents if instance["name"] not in names]


def checks(asked: Asked, reader: Reader) -> Dict[str, Dict[str, str]]:
    """Return the digest of each script that the router of each engine runs, by its name.

    Those that an interrupted run has written are proved by nobody, so while its undo is armed there are none.
    """
    if records.is_armed():
        return {NATIVE: {}, AGENT: {}}
    native = keepalived_conf.scripts(reader.text(asked["keepalived_config"]))
    agents = facts.agent_checks(reader.text(asked["agent_config"]))
    return {
        engine: {str(each.get("name")): definitions.digest(each) for each in found}
        for engine, found in ((NATIVE, native), (AGENT, agents))
    }


def _deployed(asked: Asked, reader: Reader) -> Found:
    """Return the states of the packages and the units, and what is in the way of installing, starting or writing."""
    wanted = asked["packages"] + _of_family(asked, reader)
    units, static = ([unit for unit in asked["units"] if (unit in STATIC_PODS) == is_pod] for is_pod in (False, True))
    runs = pods.running() if static else {}
    every = reader.packages([*dict.fromkeys(wanted + asked["removes"])])
    packages = every.of(wanted)
    masked = reader.units_in("LoadState", units, "masked")
    recorded = facts.packages(reader.text(asked["packages_record"]))
    unobtainable = reader.unobtainable(packages.to_fetch)
    asked_dnf = reader.asked_dnf([] if unobtainable else packages.to_fetch)
    return {
        "missing_packages": packages.missing,
        "recorded_packages": recorded,
        "own_packages": [name for name in asked["packages"] if name in recorded],
        "unobtainable": unobtainable or asked_dnf.unobtainable,
        "unremovable": {name: why for name, why in every.unremovable.items() if name in recorded},
        "active_units": reader.units_in("ActiveState", units, "active") + [name for name in static if name in runs],
        "restarting_units": reader.units_in("ActiveState", units, "activating", "deactivating"),
        "existing_units": reader.units_in("LoadState", units, "loaded") + masked,
        "enabled_units": reader.units_in("UnitFileState", units, "enabled") + pods.enabled(static),
        "own_units": [unit for unit in units if facts.is_ours(unit)] + pods.own(static),
        "pods_engine": pod_programs.engine(),
        "obstacles": {
            **packages.uninstallable,
            **asked_dnf.filtered,
            **obstacles.of_masked_units(masked),
            **obstacles.of_files(asked["files"]),
            **obstacles.of_pods(static),
        },
    }


def _of_family(asked: Asked, reader: Reader) -> List[str]:
    """Return the packages whose names depend on the family: what sets booleans of SELinux, and ping."""
    sets_booleans = asked["sets_booleans"] and facts.has_selinux()
    lacks_ping = asked["pings"] and not reader.find("ping")
    family = platforms.os_family(reader.text(facts.OS_RELEASE))
    needed = ((sets_booleans, platforms.SEBOOLEAN_PACKAGES), (lacks_ping, platforms.PING_PACKAGES))
    return [names[family] for wanted, names in needed if wanted and family in names]
