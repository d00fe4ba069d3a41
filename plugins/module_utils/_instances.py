# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `instances` half of the model: Virtual Routers, their addresses, peers and what they track.

An instance as ``read_instances`` returns it has every key of ``INSTANCE``; intervals and delays are in seconds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Optional, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    in_the_users_words,
    integer,
    lines,
    list_of,
    number,
    one_of,
    read,
    text,
    word,
)

AUTH_PASS_LENGTH = 8  # what both ends compare; RFC 2338 section 5.3.10
V3_INTERVAL = (0.01, 40.95)  # 12 bits of centiseconds, RFC 9568 section 5.2.7
V2_INTERVAL = (1, 255)  # 8 bits of seconds, RFC 3768 section 5.3.7


def _vip(value: Any) -> Tuple[Any, Optional[str]]:
    try:
        interface = ipaddress.ip_interface(str(value))
    except ValueError:
        return None, "an address, with or without a prefix length, is wanted."
    return (str(interface) if "/" in str(value) else f"{interface.ip}/{interface.max_prefixlen}"), None


TRACKED = {
    "name": Field(word, required=True),
    # 0 means: its failure puts the instance into FAULT.
    "weight": Field(integer(-253, 253), 0),
}

SCRIPT = {
    "name": Field(word, required=True),
    "command": Field(text, required=True),
    "interval": Field(number(0.01, 86400, " seconds"), 2),
    "timeout": Field(number(0.01, 86400, " seconds"), 2),
    "rise": Field(integer(1, 1000), 1),
    "fall": Field(integer(1, 1000), 1),
    "user": Field(word),
}

TRACK_FILE = {
    "name": Field(word, required=True),
    "path": Field(text, required=True),
}

INSTANCE = {
    "name": Field(word, required=True),
    "state": Field(one_of("MASTER", "BACKUP"), "BACKUP"),
    "interface": Field(word, required=True),
    "vrid": Field(integer(1, 255, "a VRID"), required=True),
    "version": Field(integer(2, 3, "a VRRP version"), 2),
    "priority": Field(integer(1, 255, "a priority"), 100),
    "advert_interval": Field(number(*V3_INTERVAL[:1], 255, " seconds"), 1),
    "preempt": Field(boolean, True),
    "preempt_delay": Field(number(0, 1000, " seconds"), 0),
    "auth_pass": Field(text, ""),
    "multicast": Field(boolean, False),
    "source": Field(address),
    "peers": Field(list_of(address), []),
    "addresses": Field(list_of(_vip, at_least=1), required=True, default=[]),
    "track_scripts": Field(anything, []),
    "track_files": Field(anything, []),
    "track_interfaces": Field(anything, []),
    "garp_refresh": Field(integer(0, 86400, "seconds"), 60),
    "notify": Field(text),
    "lines": Field(lines, []),
}

RAW = {
    "global_lines": Field(lines, []),
    "extra_lines": Field(lines, []),
}

SYNC_GROUP = {
    "name": Field(word, required=True),
    "instances": Field(list_of(word, at_least=1), required=True, default=[]),
    "notify": Field(text),
    "lines": Field(lines, []),
}


def read_list(schema: Dict[str, Field], given: Any, place: str, faults: Faults) -> List[Dict[str, Any]]:
    """Read a list of mappings that share a schema, and see that no name stands twice."""
    if not isinstance(given, list):
        faults.append(f"{place} is {given!r}: a list is wanted.")
        return []
    items = [read(schema, item, _place(place, at, item), faults) for at, item in enumerate(given)]
    names = [item["name"] for item in items if item["name"]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        faults.append(f"{place} has the name '{name}' twice: give each its own.")
    return items


def _place(place: str, at: int, item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return f"{place}[{at}] ({name})" if name else f"{place}[{at}]"


def read_instances(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the instances with every default filled in, and a sentence for each fault."""
    faults: Faults = []
    instances = read_list(INSTANCE, given, place, faults)
    for at, instance in enumerate(instances):
        where = _place(place, at, instance)
        for kind in ("track_scripts", "track_files", "track_interfaces"):
            instance[kind] = read_list(TRACKED, _spelled_out(instance[kind]), f"{where}.{kind}", faults)
        instance["family"] = _family(instance, where, faults)
        faults.extend(_contradictions(instance, where))
    faults.extend(vrid_clashes(instances, place))
    return instances, faults


def _spelled_out(given: Any) -> Any:
    """A bare name is the common case of something tracked."""
    return [{"name": item} if isinstance(item, str) else item for item in given] if isinstance(given, list) else given


def _family(instance: Dict[str, Any], place: str, faults: Faults) -> int:
    """Return 4 or 6: a Virtual Router protects one family, RFC 9568 section 1.5."""
    families = {ipaddress.ip_interface(vip).version for vip in instance["addresses"]}
    if len(families) > 1:
        faults.append(f"{place}.addresses mixes IPv4 and IPv6: make an instance for each, they may share the VRID.")
    return min(families, default=4)


def _contradictions(instance: Dict[str, Any], place: str) -> Faults:
    """What each value allows by itself and what does not go together."""
    faults = []
    version, interval = instance["version"], instance["advert_interval"]
    if instance["family"] == 6 and version == 2:
        faults.append(f"{place}.version is 2: IPv6 addresses need VRRP version 3.")
    low, high = V2_INTERVAL if version == 2 else V3_INTERVAL
    if not low <= interval <= high or (version == 2 and interval != int(interval)):
        unit = "whole seconds" if version == 2 else "seconds"
        mend = "; version 3 takes fractions" if version == 2 and interval < 1 else ""
        faults.append(
            f"{place}.advert_interval is {interval}: VRRP version {version} takes {low} to {high} {unit}{mend}."
        )
    if instance["auth_pass"]:
        faults.extend(auth_pass_faults(instance["auth_pass"], f"{place}.auth_pass"))
        if version == 3:
            faults.append(f"{place}.auth_pass is set: VRRP version 3 has no authentication, leave it out.")
    if not instance["multicast"] and not instance["peers"]:
        # Unicast to nobody: every member would believe it is alone and take the VIP.
        faults.append(f"{place}.peers is empty: name the other members, or set multicast to true.")
    if not instance["preempt"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance that does not preempt starts as BACKUP.")
    if instance["preempt_delay"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance with a preempt_delay starts as BACKUP.")
    return faults


def auth_pass_faults(auth_pass: str, place: str) -> Faults:
    """Refuse what VRRP would cut silently. The sentence does not repeat the password."""
    if len(auth_pass.encode()) > AUTH_PASS_LENGTH:
        return [
            f"{place} has {len(auth_pass)} characters: VRRP compares the first {AUTH_PASS_LENGTH} only, shorten it."
        ]
    if any(c.isspace() or c in "\"'#!{}\\" for c in auth_pass):
        return [f"{place} has a character that keepalived.conf gives a meaning: use letters and digits."]
    return []


def vrid_clashes(instances: List[Dict[str, Any]], place: str) -> Faults:
    """The same VRID twice on one link and in one family is one Virtual Router to everybody else."""
    seen: Dict[Tuple[Any, ...], str] = {}
    faults = []
    for instance in instances:
        key = (instance["interface"], instance["vrid"], instance["family"])
        if key in seen and instance["vrid"] is not None:
            faults.append(
                f"{place}: {seen[key]} and {instance['name']} both have VRID {instance['vrid']} on "
                f"{instance['interface']}: give one of them another VRID."
            )
        seen.setdefault(key, instance["name"])
    return faults


def model(settings: Dict[str, Any]) -> Dict[str, Any]:
    """Return all that the role `keepalived` renders: ``{instances, scripts, files, groups, raw, faults}``.

    :param settings: ``instances``, ``scripts``, ``track_files``, ``sync_groups`` and ``raw`` as the user wrote them,
        and ``auth_pass``, which every version 2 instance without one of its own gets
    """
    instances, faults = read_instances(settings["instances"], "keepalived_instances")
    raw = read(RAW, settings["raw"], "keepalived", faults)
    scripts = read_list(SCRIPT, settings["scripts"], "keepalived_scripts", faults)
    files = read_list(TRACK_FILE, settings["track_files"], "keepalived_track_files", faults)
    groups = read_list(SYNC_GROUP, settings["sync_groups"], "keepalived_sync_groups", faults)
    faults.extend(auth_pass_faults(settings["auth_pass"], "keepalived_auth_pass"))
    for instance in instances:
        if instance["version"] == 2:
            instance["auth_pass"] = instance["auth_pass"] or settings["auth_pass"]
        place = f"keepalived_instances ({instance['name']})"
        faults.extend(_undefined(instance["track_scripts"], scripts, f"{place}.track_scripts"))
        faults.extend(_undefined(instance["track_files"], files, f"{place}.track_files"))
        if instance["interface"] in [item["name"] for item in instance["track_interfaces"]]:
            faults.append(f"{place}.track_interfaces has its own interface, which is always tracked: leave it out.")
    for group in groups:
        members = [{"name": name} for name in group["instances"]]
        faults.extend(_undefined(members, instances, f"keepalived_sync_groups ({group['name']}).instances"))
        faults.extend(_weights_in(group, instances))
    return {
        "instances": instances,
        "scripts": scripts,
        "files": files,
        "groups": groups,
        "raw": raw,
        "faults": [in_the_users_words(fault, "keepalived") for fault in faults],
    }


def _weights_in(group: Dict[str, Any], instances: List[Dict[str, Any]]) -> Faults:
    """keepalived ignores weights in a group: its members change together, by FAULT only."""
    return [
        f"keepalived_sync_groups ({group['name']}): its instance {instance['name']} tracks {item['name']} with weight "
        f"{item['weight']}, which keepalived ignores in a group: use weight 0 (FAULT)."
        for instance in instances
        if instance["name"] in group["instances"]
        for kind in ("track_scripts", "track_files", "track_interfaces")
        for item in instance[kind]
        if item["weight"]
    ]


def _undefined(named: List[Dict[str, Any]], defined: List[Dict[str, Any]], place: str) -> Faults:
    known = [item["name"] for item in defined]
    return [
        f"{place} names '{item['name']}', which is not defined: known are {', '.join(map(str, known)) or 'none'}."
        for item in named
        if item["name"] not in known
    ]
