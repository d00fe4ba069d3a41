# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `services` half of the model: what is balanced, to which servers, and how each of them is checked.

The keys, their values and their defaults are those of the agent's own configuration (``_agent.proxy.config``).
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ..._agent.config.schema import Faults, Field, lines, place_of, read_list
from ..._agent.proxy import config, rules

ANY = "*"

SERVICE = {
    **config.SERVICE,
    "frontend_lines": Field(lines, []),
    "backend_lines": Field(lines, []),
}
# How long a check may take is a variable of the roles, the same for all services.
CHECK = {key: field for key, field in config.CHECK.items() if key != "timeout"}


def read_services(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the services with every default filled in, and a sentence for each fault.

    :param given: what the user wrote
    :param place: the variable's name, for the sentences
    """
    faults: Faults = []
    if not isinstance(given, list):
        return [], [f"{place} is {given!r}: a list of services is wanted."]
    services = [_read_service(item, place_of(place, at, item), faults) for at, item in enumerate(given)]
    faults.extend(_clashes(services, place))
    return services, faults


def _read_service(given: Any, place: str, faults: Faults) -> Dict[str, Any]:
    service = config.read_service(given, place, faults, SERVICE, CHECK)
    if service["check"]["verify"] and not service["check"]["host"]:
        faults.append(f"{place}.check.verify is true, but host is empty: set host to the name in the certificates.")
    return service


def changed_check(usual: Dict[str, Any], own: Dict[str, Any]) -> Dict[str, Any]:
    """Return a check with the user's changes, without the usual keys that the user's type of check does not have."""
    kind = own.get("type", usual["type"])
    return {**{key: value for key, value in usual.items() if kind in config.TYPES.get(key, [kind])}, **own}


def _clashes(services: List[Dict[str, Any]], place: str) -> Faults:
    """Services with the same name, or with the same address and port: HAProxy refuses them or mixes them up."""
    faults = []
    for at, one in enumerate(services):
        for other in services[:at]:
            if one["name"] is not None and one["name"] == other["name"]:
                faults.append(f"{place} has the name '{one['name']}' twice: give each service its own.")
            if _meet(one, other):
                faults.append(_clash(one, other, place))
    return faults


def _meet(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    return one["port"] is not None and one["port"] == other["port"] and binds_overlap(one["bind"], other["bind"])


def _clash(one: Dict[str, Any], other: Dict[str, Any], place: str) -> str:
    return (
        f"{place}: {other['name']} and {one['name']} both listen on port {one['port']}: "
        "change a port or bind them to different addresses."
    )


def read_monitors(given: Any, services: List[Dict[str, Any]], place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the monitors with every default filled in, and a sentence for each fault.

    :param services: whose servers they count, as `read_services` returns them
    """
    faults: Faults = []
    monitors = read_list(config.MONITOR, given, place, faults)
    for at, monitor in enumerate(monitors):
        faults.extend(rules.of_monitor(monitor, services, place_of(place, at, monitor)))
    return monitors, faults


def monitor_clashes(monitors: List[Dict[str, Any]], services: List[Dict[str, Any]], place: str) -> Faults:
    """Monitors that share a port or a name with another section: HAProxy would answer from either of them."""
    faults: Faults = []
    for at, monitor in enumerate(monitors):
        faults.extend(_clash(monitor, other, place) for other in [*services, *monitors[:at]] if _meet(monitor, other))
        if monitor["name"] and monitor["name"] in [service["name"] for service in services]:
            faults.append(f"{place} has the name '{monitor['name']}', which a service has too: give each its own.")
    return faults


def binds_overlap(one: List[str], other: List[str]) -> bool:
    """Return whether two lists of listen addresses have one in common."""
    return ANY in one or ANY in other or bool(set(one) & set(other))


def port_conflicts(
    services: List[Dict[str, Any]],
    listeners: List[Dict[str, Any]],
    host: str,
    own: Sequence[str] = ("haproxy",),
) -> Faults:
    """Return a sentence for each other program that already listens where the balancer is to listen.

    :param listeners: as the module `host_info` returns them: ``{address, port, program, pid}``
    :param own: the balancer's own programs
    """
    faults = []
    for service in services:
        for listener in listeners:
            wildcard = listener["address"] in ("0.0.0.0", "::")
            if listener["program"] in own or listener["port"] != service["port"]:
                continue
            if wildcard or binds_overlap(service["bind"], [listener["address"]]):
                faults.append(
                    f"{host}: port {service['port']} of service {service['name']} is already taken by "
                    f"{listener['program']} (pid {listener['pid']}): stop that program or move the service."
                )
    return list(dict.fromkeys(faults))
