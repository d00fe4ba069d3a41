# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's configuration: JSON in the words of the collection's model, read into ``vrrp.settings``.

Every fault is a sentence with its place, and all of them are found before anything is changed: ``load`` is what
``check-config``, the start and a reload share. In the file times are seconds, in the settings microseconds.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..checks import settings as checks
from ..config import fields, file
from ..config import host as this_host
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
from . import rules
from . import settings as wanted
from .core import packet
from .fields import checksum, router_address, vip

MILLION = 1_000_000
WHOLE = "configuration"

CONFIGURATION = {
    "instances": Field(list_of(anything), [], required=True),
    "sync_groups": Field(list_of(anything), []),
    "checks": Field(list_of(anything), []),
    "status_socket": Field(fields.socket_path, wanted.Settings._field_defaults["status_socket"]),
    "script_user": Field(word, wanted.Settings._field_defaults["script_user"]),
}

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
    "source": Field(router_address),
    "peers": Field(list_of(router_address), []),
    "addresses": Field(list_of(vip, at_least=1), required=True, default=[]),
    "track": Field(anything, []),
    "garp_refresh": Field(number(0, 86400, " seconds"), 60),
    "notify": Field(fields.program, ()),
    "checksum": Field(checksum, packet.RFC5798),
}

EVERY_CHECK = {
    "name": Field(word, required=True),
    "type": Field(one_of(*checks.CHECK_TYPES), required=True),
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
CHECKS_OWN: Dict[str, Dict[str, Field]] = {
    checks.PROCESS: {"process": Field(fields.process, required=True)},
    checks.TCP: TCP,
    checks.HTTP: HTTP,
    checks.HTTPS: HTTP,
    checks.SCRIPT: {"command": Field(fields.program, required=True), "user": Field(word, "")},
    checks.FILE: {"file": Field(fields.path, required=True)},
    checks.INTERFACE: {"interface": Field(fields.interface, required=True)},
}

ANY_CHECKS_OWN = {key for own in CHECKS_OWN.values() for key in own}

SYNC_GROUP = {
    "name": Field(word, required=True),
    "instances": Field(list_of(word, at_least=1), required=True, default=[]),
    "notify": Field(fields.program, ()),
}


class Read(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    instances: List[Dict[str, Any]]
    groups: List[Dict[str, Any]]
    checks: List[Dict[str, Any]]


def load(path: str) -> Tuple[Optional[wanted.Settings], Faults]:
    """Return what a file wants, or None and every reason why it cannot be had on this host."""
    text, faults = file.load(path)
    return (None, faults) if faults else parse(text, path, this_host)


def parse(text: str, path: str = WHOLE, host: Any = None) -> Tuple[Optional[wanted.Settings], Faults]:
    """Return what a text wants, or None and every fault in it. Never raises.

    :param host: is asked about the programs that the text names; None if they are another host's
    """

    def settings(given: Any, faults: Faults) -> Optional[wanted.Settings]:
        found = _read(given, faults)
        faults += _on_this_host(found, host) if host else []
        return None if faults else _settings(found)

    return file.read(text, path, settings)


def _read(given: Any, faults: Faults) -> Read:
    whole = read(CONFIGURATION, given, WHOLE, faults)
    checks = [_check(item, place_of("checks", at, item), faults) for at, item in enumerate(whole["checks"])]
    faults.extend(same_names(checks, "checks"))
    instances = _instances(whole["instances"], faults)
    groups = read_list(SYNC_GROUP, whole["sync_groups"], "sync_groups", faults)
    for place, instance in _placed("instances", instances):
        faults.extend(rules.of_instance(instance, place))
        faults.extend(rules.of_tracking(instance, checks, f"{place}.track"))
    faults.extend(rules.among_instances(instances))
    for place, group in _placed("sync_groups", groups):
        faults.extend(rules.of_group(group, instances, place))
    faults.extend(rules.among_groups(groups))
    return Read(whole, instances, groups, checks)


def _placed(place: str, items: List[Dict[str, Any]]) -> List[Tuple[str, Dict[str, Any]]]:
    return [(place_of(place, at, item), item) for at, item in enumerate(items)]


def _check(item: Any, place: str, faults: Faults) -> Dict[str, Any]:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in CHECKS_OWN:  # what else it needs is not known
        rest = {key: item[key] for key in item if key not in ANY_CHECKS_OWN} if isinstance(item, dict) else item
        return read(EVERY_CHECK, rest, place, faults)
    schema = {**EVERY_CHECK, **CHECKS_OWN[kind]}
    strange = [key for key in item if key in ANY_CHECKS_OWN and key not in schema]
    for key in strange:
        types = ", ".join(name for name, own in CHECKS_OWN.items() if key in own)
        faults.append(f"{place}.{key} is for a check of type {types}, and this one is {kind}: leave it out.")
    return read(schema, {key: item[key] for key in item if key not in strange}, place, faults)


def _instances(given: List[Any], faults: Faults) -> List[Dict[str, Any]]:
    instances = read_list(INSTANCE, given, "instances", faults)
    for place, instance in _placed("instances", instances):
        tracked = rules.spelled_out(instance["track"])
        instance["track"] = read_list(rules.TRACKED, tracked, f"{place}.track", faults)
        instance["auth_pass"] = _password(instance["auth_pass"], f"{place}.auth_pass", faults)
        instance["family"] = rules.family(instance, place, faults)
    return instances


def _password(given: Any, place: str, faults: Faults) -> str:
    """Read by itself, because the sentences of ``schema.read`` show what they refuse."""
    if not isinstance(given, str) or not given.isprintable():
        faults.append(f"{place} is of a wrong kind: a text of printable characters is wanted.")
        return ""
    faults.extend(rules.too_long(given, place))
    return given


def _on_this_host(found: Read, host: Any) -> Faults:
    """What the host says against the programs that are named."""
    runner = found.whole["script_user"]
    asked = []
    for place, item in _placed("instances", found.instances) + _placed("sync_groups", found.groups):
        if item["notify"]:
            asked.append((f"{place}.notify", item["notify"][0], host.program(item["notify"][0], runner)))
    for place, check in _placed("checks", found.checks):
        if check.get("command"):
            program = check["command"][0]
            asked.append((f"{place}.command", program, host.program(program, check["user"] or runner)))
    return [f"{place} is {name!r}: {wrong}" for place, name, wrong in asked if wrong]


def _settings(found: Read) -> wanted.Settings:
    return wanted.Settings(
        instances=tuple(_instance(item) for item in found.instances),
        groups=tuple(wanted.Group(item["name"], tuple(item["instances"]), item["notify"]) for item in found.groups),
        checks=tuple(_check_of(item) for item in found.checks),
        status_socket=found.whole["status_socket"],
        script_user=found.whole["script_user"],
    )


def _instance(item: Dict[str, Any]) -> wanted.Instance:
    renamed = {
        "interval": _microseconds(item["advert_interval"]),
        "preempt_delay": _microseconds(item["preempt_delay"]),
        "announce_again": _microseconds(item["garp_refresh"]),
        "auth_pass": item["auth_pass"].encode(),
        "addresses": tuple(item["addresses"]),
        "peers": tuple(item["peers"]),
        "track": tuple(wanted.Tracked(**tracked) for tracked in item["track"]),
    }
    same = {key: item[key] for key in item if key in wanted.Instance._fields and key not in renamed}
    return wanted.Instance(**same, **renamed)


def _check_of(item: Dict[str, Any]) -> checks.Check:
    times = {key: _microseconds(item[key]) for key in ("interval", "timeout")}
    return checks.Check(**{**item, **times})


def _microseconds(seconds: float) -> int:
    return round(seconds * MILLION)
