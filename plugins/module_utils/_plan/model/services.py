# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `services` half of the model: what is balanced, to whom, and how each server is checked.

A service as ``read_services`` returns it::

    {name, bind: [address or '*'], port, mode, balance, servers: [{name, address, port, weight, backup}],
     check: {type, path, port, interval (seconds), fast_interval (0: interval), fall, rise, slow_start (seconds),
     shutdown_sessions}, frontend_lines, backend_lines}

A monitor as ``read_monitors`` returns it: ``{name, bind, port, path, at_least: {service: number of servers}}``.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    integer,
    lines,
    list_of,
    number,
    one_of,
    place_of,
    port,
    read,
    read_list,
    text,
    word,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, rules

ANY = "*"


def _bind_address(value: Any) -> Tuple[Any, Optional[str]]:
    return (ANY, None) if value == ANY else address(value)


CHECK = {
    "type": Field(one_of("tcp", "http", "https", "none"), "tcp"),
    "path": Field(text, "/"),
    "port": Field(port),
    "interval": Field(number(0.1, 3600, " seconds"), 2),
    "fast_interval": Field(number(0, 3600, " seconds"), 0),
    "fall": Field(integer(1, 100), 3),
    "rise": Field(integer(1, 100), 2),
    "slow_start": Field(number(0, 3600, " seconds"), 0),
    "shutdown_sessions": Field(boolean, False),
}

SERVER = {
    "name": Field(word),
    "address": Field(address, required=True),
    "port": Field(port),
    "weight": Field(integer(0, 256), 1),
    "backup": Field(boolean, False),
}

SERVICE = {
    "name": Field(word, required=True),
    "bind": Field(list_of(_bind_address, at_least=1), [ANY]),
    "port": Field(port, required=True),
    "mode": Field(one_of("tcp", "http"), "tcp"),
    "balance": Field(one_of("roundrobin", "leastconn", "source"), "roundrobin"),
    "check": Field(anything, {}),
    "servers": Field(anything, []),
    "frontend_lines": Field(lines, []),
    "backend_lines": Field(lines, []),
}


def read_services(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the services with every default filled in, and a sentence for each fault.

    :param given: what the user wrote
    :param place: the variable it stands in, for the sentences
    """
    faults: Faults = []
    if not isinstance(given, list):
        return [], [f"{place} is {given!r}: a list of services is wanted."]
    services = [_read_service(service, f"{place}[{at}]", faults) for at, service in enumerate(given)]
    faults.extend(_clashes(services, place))
    return services, faults


def _read_service(given: Any, place: str, faults: Faults) -> Dict[str, Any]:
    if isinstance(given, dict) and given.get("name"):
        place = f"{place} ({given['name']})"
    service = read(SERVICE, given, place, faults)
    service["check"] = read(CHECK, service["check"], f"{place}.check", faults)
    service["servers"] = _read_servers(service, place, faults)
    return service


def _read_servers(service: Dict[str, Any], place: str, faults: Faults) -> List[Dict[str, Any]]:
    given = service["servers"]
    if not isinstance(given, list) or not given:
        faults.append(f"{place}.servers is {given!r}: name at least one server.")
        return []
    servers = []
    for at, item in enumerate(given):
        # A bare address is the common case; everything else about it has a default.
        spelled = item if isinstance(item, dict) else {"address": item}
        server = read(SERVER, spelled, f"{place}.servers[{at}]", faults)
        server["name"] = server["name"] or server["address"]
        server["port"] = server["port"] or service["port"]
        servers.append(server)
    names = [server["name"] for server in servers]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        faults.append(f"{place}.servers has '{name}' twice: give each server a name of its own.")
    return servers


def _clashes(services: List[Dict[str, Any]], place: str) -> Faults:
    """Two services of one name or on one address and port: haproxy would refuse or mix them up."""
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

    :param services: as `read_services` returns them: beside whom they listen, and of whom they tell
    """
    faults: Faults = []
    monitors = read_list(config.MONITOR, given, place, faults)
    for at, monitor in enumerate(monitors):
        faults.extend(rules.of_monitor(monitor, services, place_of(place, at, monitor)))
        # Of two sections on one port haproxy would answer by either of them.
        faults.extend(_clash(monitor, other, place) for other in [*services, *monitors[:at]] if _meet(monitor, other))
        if monitor["name"] and monitor["name"] in [service["name"] for service in services]:
            faults.append(f"{place} has the name '{monitor['name']}', which a service has too: give each its own.")
    return monitors, faults


def binds_overlap(one: List[str], other: List[str]) -> bool:
    """Return whether two lists of listen addresses would fight for one port."""
    return ANY in one or ANY in other or bool(set(one) & set(other))


def listeners_in_the_way(
    services: List[Dict[str, Any]],
    listeners: List[Dict[str, Any]],
    host: str,
    own: Sequence[str] = ("haproxy",),
) -> Faults:
    """Name every other program that already listens where the balancer is to listen.

    :param listeners: as the module `host_info` returns them: ``{address, port, program, pid}``
    :param own: the balancer's programs
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
