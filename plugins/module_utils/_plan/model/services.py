# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `services` half of the model: what is balanced, to which servers, and how each of them is checked.

The keys, their values and their defaults are those of the agent's own configuration (``_agent.proxy.config``).
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    anything,
    list_of,
    no_list,
    place_of,
    read,
    read_list,
    refused,
    same_names,
    shown,
    unknown_keys,
)
from ..._agent.proxy import config, names, rules
from ..._agent.proxy.settings import HTTPS, TCP
from ..._shared.engines import is_own
from . import agent_checks, bind_line, pace, raw_lines, returns, shared, stick, tls
from .values import balance, is_name, optional, path_prefix, server_address, server_options

ANY = "*"

SERVICE = {
    **config.SERVICE,
    "balance": config.SERVICE["balance"]._replace(check=balance),
    "tls": Field(anything),
    "routes": Field(list_of(anything), []),
    "bind_options": Field(bind_line.bind_options, []),
    "accept_proxy": config.SERVICE["allow"],
    "sticky": Field(anything),
    "rate_limit": Field(anything),
    "backend": Field(optional(config.SERVICE["name"].check), ""),
    "frontend_name": Field(optional(config.SERVICE["name"].check), ""),
    "frontend_lines": Field(raw_lines.section_lines, []),
    "backend_lines": Field(raw_lines.section_lines, []),
    "return": Field(anything),
}
# A route has servers of its own, and which requests go to them.
BACKEND = {
    key: SERVICE[key]
    for key in ("name", "balance", "servers", "check", "send_proxy", "sticky", "backend_lines", "return")
}
REQUESTS = {
    "hosts": Field(list_of(names.host), []),
    "paths": Field(list_of(path_prefix, key="paths"), []),
}
ROUTE = {**REQUESTS, **BACKEND}
# A server may have a name, which HAProxy resolves, and what else HAProxy knows of servers.
SERVER = {
    **config.SERVER,
    "address": Field(server_address, required=True),
    "options": Field(server_options, []),
}
# How long a check may take is a variable of the roles, the same for all services.
CHECK = {
    **{
        key: field._replace(default=None) if key in pace.FORMER else field
        for key, field in config.CHECK.items()
        if key not in ("timeout", "late_timeout")
    },
    "agent": Field(anything),
}


class Read(List[Dict[str, Any]]):
    """Services that `read_services` has returned before: a plan hands them on, and nobody validates them again."""


def read_services(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the services with every default filled in, and a sentence for each fault.

    :param given: what the user wrote
    :param place: the variable's name, for the sentences
    """
    faults: Faults = []
    if isinstance(given, Read):
        return list(given), []
    if not isinstance(given, list):
        return [], [f"{place} is {shown(given)}: {no_list(given, 'a list of services')}"]
    services = [_read_service(item, place_of(place, at, item), faults) for at, item in enumerate(given)]
    routes = [route for service in services for route in service["routes"]]
    faults.extend(same_names([*listeners(services), *routes], place))
    faults.extend(_sections_taken(services, place))
    faults.extend(shared.faults(services, place))
    return services, faults


def planned(given: Any) -> Any:
    """Return the services that a plan has as JSON; others as they are. What a user writes as JSON is refused before."""
    try:
        return Read(json.loads(given)) if isinstance(given, str) and given.startswith("[") else given
    except (ValueError, RecursionError):
        return given


def _read_service(given: Any, place: str, faults: Faults) -> Dict[str, Any]:
    service = _read_backend(given, place, faults, SERVICE)
    if service["tls"] is not None:
        tls.read_tls(service, f"{place}.tls", faults)
    faults.extend(shared.own_faults(given, service, place, faults) if service["backend"] else [])
    faults.extend(bind_line.faults(service, place))
    mode = None if refused(faults, place, "mode") else service["mode"]
    service["routes"] = [_read_route(item, service, mode, where, faults) for where, item in _placed(service, place)]
    stick.read_sticky(service, mode, place, faults)
    stick.read_rate_limit(service, place, faults)
    faults.extend(stick.cookies_shared(backends(service, place)))
    faults.extend(_routes_faults(service, place) if service["routes"] and mode else [])
    if mode:
        faults.extend(returns.mode_faults(service, dict(backends(service, place)), place))
    return service


def _routes_faults(service: Dict[str, Any], place: str) -> Iterator[str]:
    """Refuse what a route cannot see: by TLS that is passed through a client names a host, and no path."""
    is_tcp = service["mode"] == TCP
    if is_tcp and service["tls"]:
        yield f"{place}.routes need mode http where the service has tls: set mode to http."
    for where, route in _placed(service, place) if is_tcp else []:
        if route["paths"]:
            yield f"{where}.paths need mode http: set mode to http, or leave them out."
    yield from names.shadowed(service["routes"], place, is_tcp)


def _read_backend(given: Any, place: str, faults: Faults, keys: Mapping[str, Field]) -> Dict[str, Any]:
    keys = {**keys, "servers": returns.servers_of(given, keys["servers"])}
    backend = config.read_service(given, place, faults, config.Schemas(keys, SERVER, CHECK))
    backend["return"] = returns.completed(given, backend, place, faults)
    check = backend["check"] = pace.completed(backend["check"], len(backend["servers"]))
    check["agent"] = agent_checks.completed(check["agent"], f"{place}.check.agent", faults)
    if check["verify"] and not all(step["host"] or step["sni"] for step in _over_tls(check)):
        faults.append(f"{place}.check.verify is true, but host is empty: set host to the name in the certificates.")
    return backend


def _read_route(given: Any, service: Dict[str, Any], mode: Optional[str], place: str, faults: Faults) -> Dict[str, Any]:
    """Return a route.

    :param mode: of its service; None where it was refused
    """
    if not isinstance(given, dict):
        read(ROUTE, given, place, faults)
        return _read_route({}, service, mode, place, [])
    faults.extend(unknown_keys(given, list(ROUTE), place))
    requests = read(REQUESTS, {key: given[key] for key in REQUESTS if key in given}, place, faults)
    if not requests["hosts"] and not requests["paths"] and not refused(faults, place, "hosts", "paths"):
        faults.append(f"{place} has neither hosts nor paths, so that no request would take it: name some.")
    # A route is reached where its service is.
    where = {key: service[key] for key in ("bind", "port")}
    own = {key: given[key] for key in BACKEND if key in given}
    keys = {**BACKEND, **{key: SERVICE[key]._replace(required=False) for key in where}}
    backend = _read_backend({**own, **where}, place, faults, keys)
    stick.read_sticky(backend, mode, place, faults)
    return {**requests, **{key: backend[key] for key in BACKEND}}


def _placed(service: Dict[str, Any], place: str) -> List[Tuple[str, Dict[str, Any]]]:
    return [(place_of(f"{place}.routes", at, route), route) for at, route in enumerate(service["routes"])]


def backends(service: Dict[str, Any], place: str) -> List[Tuple[str, Dict[str, Any]]]:
    """Return a service and its routes, each with its place: all of them have servers.

    A service that sends to the servers of another one is not among them.
    """
    return [*([] if service["backend"] else [(place, service)]), *_placed(service, place)]


def sections(service: Dict[str, Any]) -> List[str]:
    """Return the names of the sections that a service has besides those with the names of its backends."""
    return stick.sections(service, [each for _place, each in backends(service, "")])


def _sections_taken(services: List[Dict[str, Any]], place: str) -> Iterator[str]:
    """Refuse a second section of one name, in which two frontends, two backends or two tables would meet."""
    taken = {each["name"] for each in [*listeners(services), *(each for one in services for each in one["routes"])]}
    for at, service in enumerate(services):
        for name in sections(service):
            if name in taken:
                where = place_of(place, at, service)
                yield f"{where} has the section '{name}' in haproxy.cfg, and another one has it too: rename one."
            taken.add(name)


def resolved_names(services: List[Dict[str, Any]]) -> List[str]:
    """Return the names by which servers are named instead of their addresses."""
    every = [backend for service in services for _place, backend in backends(service, "")]
    servers = [server for backend in every for server in backend["servers"]]
    return list(dict.fromkeys(server["address"] for server in servers if is_name(server["address"])))


def listeners(services: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return everything that listens: the services, and the redirects to those with TLS."""
    redirects = [
        {**service, "name": f"{service['name']}-redirect", "port": service["tls"]["redirect"], "frontend_lines": []}
        for service in services
        if service["tls"] and service["tls"]["redirect"]
    ]
    return [*services, *redirects]


def _over_tls(check: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [step for step in check["steps"] or [check] if step["type"] == HTTPS]


def changed_check(usual: Dict[str, Any], own: Dict[str, Any]) -> Dict[str, Any]:
    """Return a check with the user's changes, without the usual keys that the user's type of check does not have."""
    kind = own.get("type", usual["type"])
    return {**{key: value for key, value in usual.items() if kind in config.TYPES.get(key, [kind])}, **own}


def read_monitors(
    given: Any,
    services: Optional[List[Dict[str, Any]]],
    place: str,
    inventory_servers: Mapping[str, int] = MappingProxyType({}),
) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the monitors with every default filled in, and a sentence for each fault.

    :param services: whose servers they count, as `read_services` returns them; None where their list was refused
    :param inventory_servers: how many the inventory names, by service whose servers are the nodes of a cluster
    """
    faults: Faults = []
    monitors = read_list(config.MONITOR, given, place, faults)
    if services is None:
        return monitors, faults
    for at, monitor in enumerate(monitors):
        faults.extend(rules.of_monitor(monitor, services, place_of(place, at, monitor)))
        faults.extend(_of_numbers(monitor, services, inventory_servers, place_of(place, at, monitor)))
    return monitors, faults


def countable(servers: Sequence[Mapping[str, Any]]) -> int:
    """Return how many servers of a service a monitor counts at most."""
    return sum(not server["backup"] for server in servers) or min(1, len(servers))


def _of_numbers(
    monitor: Dict[str, Any], services: List[Dict[str, Any]], inventory_servers: Mapping[str, int], place: str
) -> Iterator[str]:
    """Yield which conditions of a monitor no service can meet, with the servers that the user has named."""
    for service in [service for service in services if service["name"] in monitor["at_least"]]:
        name, number = service["name"], monitor["at_least"][service["name"]]
        if service["backend"]:
            yield f"{place}.at_least requires servers of {name}, which are those of {service['backend']}: name that."
        if service["return"]:
            yield f"{place}.at_least requires servers of {name}, which answers without servers: leave it out."
        there = max(countable(service["servers"]), inventory_servers.get(name, 0))
        if 0 < there < number:
            yield f"{place}.at_least requires {number} servers of {name}, which has {there} without backups: lower it."


def names_taken(monitors: List[Dict[str, Any]], services: List[Dict[str, Any]], place: str) -> Faults:
    """Return a sentence for each monitor with the name of a service: HAProxy would have two sections of that name."""
    taken = {name for service in services for name in (service["name"], *sections(service))}
    return [
        f"{place} has the name '{monitor['name']}', which a service has too: give each its own."
        for monitor in monitors
        if monitor["name"] and monitor["name"] in taken
    ]


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

    :param listeners: as the module `host_info` returns them: ``{address, port, program, pid, runs_in}``
    :param own: the balancer's own programs; in a container, or another's unit, such a program is none of them
    """
    faults = []
    for service in services:
        for listener in listeners:
            wildcard = listener["address"] in ("0.0.0.0", "::")
            if is_own(listener, own) or listener["port"] != service["port"]:
                continue
            if wildcard or binds_overlap(service["bind"], [listener["address"]]):
                where = f" in {listener['runs_in']}" if listener.get("runs_in") else ""
                faults.append(
                    f"{host}: port {service['port']} of service {service['name']} is already taken by "
                    f"{listener['program']}{where} (pid {listener['pid']}): stop that program or move the service."
                )
    return list(dict.fromkeys(faults))
