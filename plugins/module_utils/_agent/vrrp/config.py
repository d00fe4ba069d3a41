# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's configuration: JSON with the keys of the collection's model, read into ``vrrp.settings``.

Each fault is a sentence with its place, and all of them are found before anything is changed: ``check-config``, the
start and a reload share ``load``. In the file times are seconds, in the settings microseconds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..checks import config as check_config
from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    counted,
    integer,
    list_of,
    number,
    one_of,
    placed,
    read,
    read_list,
    undefined,
    word,
)
from . import notation, rules, settings
from . import notes as _notes
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
    checks = check_config.read_checks(whole["checks"], faults)
    instances = _instances(whole["instances"], faults)
    groups = _groups(whole["sync_groups"], checks, faults)
    for place, instance in placed("instances", instances):
        faults.extend(rules.of_instance(instance, place, faults))
        faults.extend(rules.of_tracking(instance, checks, f"{place}.track"))
    faults.extend(rules.among_instances(instances))
    for place, group in placed("sync_groups", groups):
        faults.extend(rules.of_group(group, instances, place))
    faults.extend(rules.among_groups(groups))
    return Parts(whole, instances, groups, checks)


def _instances(data: List[Any], faults: Faults) -> List[Dict[str, Any]]:
    instances = read_list(INSTANCE, data, "instances", faults)
    for place, instance in placed("instances", instances):
        tracked = rules.spelled_out(instance["track"])
        instance["track"] = read_list(TRACKED, tracked, f"{place}.track", faults)
        instance["auth_pass"] = _password(instance["auth_pass"], f"{place}.auth_pass", faults)
        instance["family"] = rules.family(instance, place, faults)
    return instances


def _groups(data: List[Any], checks: List[Dict[str, Any]], faults: Faults) -> List[Dict[str, Any]]:
    groups = read_list(SYNC_GROUP, data, "sync_groups", faults)
    for place, group in placed("sync_groups", groups):
        group["track"] = read_list(TRACKED, rules.spelled_out(group["track"]), f"{place}.track", faults)
        faults.extend(undefined(group["track"], checks, f"{place}.track"))
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
    for place, item in placed("instances", found.instances) + placed("sync_groups", found.groups):
        if item["notify"]:
            program = item["notify"][0]
            answers.append((f"{place}.notify", program, host.program(program, item["notify_user"] or runner)))
    answers += check_config.programs(found.checks, runner, host)
    return [*answers, (file.WHOLE, path, host.configuration(path))] if answers else []


def _settings(found: Parts) -> settings.Settings:
    return settings.Settings(
        instances=tuple(_instance(item, found.groups) for item in found.instances),
        groups=tuple(
            settings.Group(item["name"], tuple(item["instances"]), item["notify"], item["notify_user"])
            for item in found.groups
        ),
        checks=tuple(map(check_config.check_of, found.checks)),
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


def counts(found: settings.Settings) -> List[str]:
    """Say what there is in a configuration."""
    return [counted(found.instances, "instance"), counted(found.groups, "sync group"), counted(found.checks, "check")]


FORMAT = file.Format(_read, _host_answers, _settings)
load, parse, notes = FORMAT.load, FORMAT.parse, _notes.notes
