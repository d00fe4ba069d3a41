# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's configuration: JSON with the keys of the collection's model, read into ``vrrp.settings``.

Each fault is a sentence with its place, and all of them are found before anything is changed: ``check-config``, the
start and a reload share ``load``. In the file times are seconds, in the settings microseconds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..checks import settings as check_settings
from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    integer,
    list_of,
    number,
    one_of,
    place_of,
    port,
    read,
    read_list,
    same_names,
    word,
)
from . import notation, rules, settings
from .core import packet


def _router_address(value: Any) -> fields.Checked:
    """The address of another router, or of this one."""
    found, wrong = fields.address(value)
    if not wrong and not fields.reachable(ipaddress.ip_address(found)):
        return None, fields.UNREACHABLE
    return found, wrong


def _vip(value: Any) -> fields.Checked:
    """A virtual address with its prefix length."""
    if "%" in str(value):
        return None, fields.SCOPED
    found, wrong = rules.vip(value)
    if wrong:
        return None, wrong
    with_subnet = ipaddress.ip_interface(found)
    ip, subnet = with_subnet.ip, with_subnet.network
    if not fields.reachable(ip):
        return None, fields.UNREACHABLE
    if ip.version == 4 and subnet.prefixlen < 31 and ip in (subnet.network_address, subnet.broadcast_address):
        return None, "this is the subnet's own network or broadcast address."
    return f"{fields.as_the_kernel_writes(ip)}/{subnet.prefixlen}", None


CONFIGURATION = {
    "instances": Field(list_of(anything), [], required=True),
    "sync_groups": Field(list_of(anything), []),
    "checks": Field(list_of(anything), []),
    "status_socket": Field(fields.socket_path, settings.Settings._field_defaults["status_socket"]),
    "script_user": Field(word, settings.Settings._field_defaults["script_user"]),
    "startup_delay": Field(number(0, 1000, " seconds"), 0),
}

TRACKED = {**rules.TRACKED, "offers": Field(boolean, False)}

INSTANCE = {
    "name": Field(word, required=True),
    "interface": Field(fields.interface, required=True),
    "vrid": Field(integer(1, 255, "a VRID"), required=True),
    "version": Field(integer(2, 3, "a VRRP version"), 2),
    "priority": Field(integer(1, 255, "a priority"), 100),
    "advert_interval": Field(number(rules.V3_INTERVAL[0], 255, " seconds"), 1),
    "preempt": Field(boolean, True),
    "preempt_delay": Field(number(0, 1000, " seconds"), 0),
    "auth_pass": Field(anything, ""),
    "multicast": Field(boolean, False),
    "source": Field(_router_address),
    "peers": Field(list_of(_router_address), []),
    "addresses": Field(list_of(notation.on_interface(_vip), at_least=1), required=True, default=[]),
    "excluded_addresses": Field(list_of(notation.on_interface(_vip)), []),
    "virtual_routes": Field(list_of(notation.route), []),
    "track": Field(anything, []),
    "garp_refresh": Field(number(0, 86400, " seconds"), 60),
    "notify": Field(fields.program, ()),
    "notify_user": Field(word, ""),
    "dont_track_primary": Field(boolean, False),
    "checksum": Field(one_of(packet.RFC5798, packet.RFC9568), packet.RFC5798),
    "min_ttl": Field(rules.ttl, packet.REQUIRED_HOP_LIMIT),
}

EVERY_CHECK = {
    "name": Field(word, required=True),
    "type": Field(one_of(*check_settings.CHECK_TYPES), required=True),
    "interval": Field(number(0.01, 86400, " seconds"), 2),
    "timeout": Field(number(0.01, 86400, " seconds"), 2),
    "rise": Field(integer(1, 1000), 1),
    "fall": Field(integer(1, 1000), 1),
}
TCP = {
    "address": Field(fields.address, required=True),
    "port": Field(port, required=True),
}
HTTP = {
    **TCP,
    "path": Field(fields.url_path, "/"),
    "host": Field(word, ""),
}
TYPE_KEYS: Dict[str, Dict[str, Field]] = {
    check_settings.PROCESS: {"process": Field(fields.process, required=True)},
    check_settings.TCP: TCP,
    check_settings.HTTP: HTTP,
    check_settings.HTTPS: HTTP,
    check_settings.SCRIPT: {"command": Field(fields.program, required=True), "user": Field(word, "")},
    check_settings.FILE: {"file": Field(fields.path, required=True)},
    check_settings.INTERFACE: {"interface": Field(fields.interface, required=True)},
}

ALL_TYPE_KEYS = {key for own in TYPE_KEYS.values() for key in own}

SYNC_GROUP = {
    "name": Field(word, required=True),
    "instances": Field(list_of(word, at_least=1), required=True, default=[]),
    "track": Field(anything, []),
    "notify": Field(fields.program, ()),
    "notify_user": Field(word, ""),
}


class Parts(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    instances: List[Dict[str, Any]]
    groups: List[Dict[str, Any]]
    checks: List[Dict[str, Any]]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    checks = [_check(item, place_of("checks", at, item), faults) for at, item in enumerate(whole["checks"])]
    faults.extend(same_names(checks, "checks"))
    instances = _instances(whole["instances"], faults)
    groups = _groups(whole["sync_groups"], checks, faults)
    for place, instance in _placed("instances", instances):
        faults.extend(rules.of_instance(instance, place))
        faults.extend(rules.of_tracking(instance, checks, f"{place}.track"))
    faults.extend(rules.among_instances(instances))
    for place, group in _placed("sync_groups", groups):
        faults.extend(rules.of_group(group, instances, place))
    faults.extend(rules.among_groups(groups))
    return Parts(whole, instances, groups, checks)


def _placed(place: str, items: List[Dict[str, Any]]) -> List[Tuple[str, Dict[str, Any]]]:
    return [(place_of(place, at, item), item) for at, item in enumerate(items)]


def _check(item: Any, place: str, faults: Faults) -> Dict[str, Any]:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in TYPE_KEYS:  # its other keys are not known
        rest = {key: item[key] for key in item if key not in ALL_TYPE_KEYS} if isinstance(item, dict) else item
        return read(EVERY_CHECK, rest, place, faults)
    schema = {**EVERY_CHECK, **TYPE_KEYS[kind]}
    misplaced = [key for key in item if key in ALL_TYPE_KEYS and key not in schema]
    for key in misplaced:
        types = ", ".join(name for name, own in TYPE_KEYS.items() if key in own)
        faults.append(f"{place}.{key} is for a check of type {types}, and this one is {kind}: leave it out.")
    return read(schema, {key: item[key] for key in item if key not in misplaced}, place, faults)


def _instances(data: List[Any], faults: Faults) -> List[Dict[str, Any]]:
    instances = read_list(INSTANCE, data, "instances", faults)
    for place, instance in _placed("instances", instances):
        tracked = rules.spelled_out(instance["track"])
        instance["track"] = read_list(TRACKED, tracked, f"{place}.track", faults)
        instance["auth_pass"] = _password(instance["auth_pass"], f"{place}.auth_pass", faults)
        instance["family"] = rules.family(instance, place, faults)
    return instances


def _groups(data: List[Any], checks: List[Dict[str, Any]], faults: Faults) -> List[Dict[str, Any]]:
    groups = read_list(SYNC_GROUP, data, "sync_groups", faults)
    for place, group in _placed("sync_groups", groups):
        group["track"] = read_list(TRACKED, rules.spelled_out(group["track"]), f"{place}.track", faults)
        faults.extend(rules.undefined(group["track"], checks, f"{place}.track"))
    return groups


def _password(data: Any, place: str, faults: Faults) -> str:
    """Read a password here, because the sentences of ``schema.read`` show the refused value."""
    if not isinstance(data, str) or not data.isprintable():
        faults.append(f"{place} has the wrong type: a string of printable characters is required.")
        return ""
    faults.extend(rules.too_long(data, place))
    return data


def _host_answers(found: Parts, path: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check the programs that are named on this host, and who may name others."""
    runner = found.whole["script_user"]
    answers = []
    for place, item in _placed("instances", found.instances) + _placed("sync_groups", found.groups):
        if item["notify"]:
            program = item["notify"][0]
            answers.append((f"{place}.notify", program, host.program(program, item["notify_user"] or runner)))
    for place, check in _placed("checks", found.checks):
        if check.get("command"):
            program = check["command"][0]
            answers.append((f"{place}.command", program, host.program(program, check["user"] or runner)))
    return [*answers, (file.WHOLE, path, host.configuration(path))] if answers else []


def _settings(found: Parts) -> settings.Settings:
    return settings.Settings(
        instances=tuple(_instance(item, found.groups) for item in found.instances),
        groups=tuple(
            settings.Group(item["name"], tuple(item["instances"]), item["notify"], item["notify_user"])
            for item in found.groups
        ),
        checks=tuple(_check_of(item) for item in found.checks),
        status_socket=found.whole["status_socket"],
        script_user=found.whole["script_user"],
        startup_delay=fields.microseconds(found.whole["startup_delay"]),
    )


def _instance(item: Dict[str, Any], groups: List[Dict[str, Any]]) -> settings.Instance:
    renamed = {
        "interval": fields.microseconds(item["advert_interval"]),
        "preempt_delay": fields.microseconds(item["preempt_delay"]),
        "announce_again": fields.microseconds(item["garp_refresh"]),
        "auth_pass": item["auth_pass"].encode(),
        "addresses": tuple(item["addresses"]),
        "excluded_addresses": tuple(item["excluded_addresses"]),
        "virtual_routes": tuple(notation.read_route(text)[0] for text in item["virtual_routes"]),
        "peers": tuple(item["peers"]),
        "track": tuple(settings.Tracked(**tracked) for tracked in _tracked(item, groups)),
    }
    same = {key: item[key] for key in item if key in settings.Instance._fields and key not in renamed}
    return settings.Instance(**same, **renamed)


def _tracked(item: Dict[str, Any], groups: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return what an instance tracks itself and what its sync group tracks for all members, each once."""
    of_group = [tracked for group in groups if item["name"] in group["instances"] for tracked in group["track"]]
    own = [tracked["name"] for tracked in item["track"]]
    return [*item["track"], *(tracked for tracked in of_group if tracked["name"] not in own)]


def _check_of(item: Dict[str, Any]) -> check_settings.Check:
    times = {key: fields.microseconds(item[key]) for key in ("interval", "timeout")}
    return check_settings.Check(**{**item, **times})


FORMAT = file.Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
