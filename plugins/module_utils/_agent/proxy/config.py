# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's configuration: JSON with the keys of the collection's model, read into ``settings``.

Each fault is a sentence with its place, and all of them are found before anything is changed: ``check-config``, the
start and a reload share ``load``. In the file times are seconds, in the settings microseconds.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type

from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    counted,
    integer,
    ip_address,
    list_of,
    no_notes,
    one_of,
    place_of,
    port,
    read,
    refused,
    same_names,
    unknown_keys,
    word,
)
from . import names, rules, settings

WEEK = 604800  # seconds
MAX_NAME_LENGTH = 256  # characters: a node's name has up to 253, RFC 1123, and one of two alike gets a number

Schema = Dict[str, Field]


def _name(value: Any) -> fields.Checked:
    """A name that is short enough for messages."""
    found, wrong = word(value)
    if not wrong and len(found) > MAX_NAME_LENGTH:
        return None, f"a name of at most {MAX_NAME_LENGTH} characters is required."
    return found, wrong


def listen_address(value: Any) -> fields.Checked:
    """'*', '::' or one address, which need not be on this host yet."""
    if value in (settings.ANY, "0.0.0.0"):
        return settings.ANY, None
    if "%" in str(value):
        return None, "leave out the % and what follows."
    found, wrong = fields.address(value)
    if wrong:
        return None, "'*', '::' or an IPv4 or IPv6 address is required."
    ip = ip_address(found)
    if ip.is_multicast or (ip.is_link_local and ip.version == 6):
        return None, "nobody can listen there: a unicast address that is not link-local is required."
    return found, None


def server_address(value: Any) -> fields.Checked:
    found, wrong = fields.address(value)
    if wrong:
        return None, wrong
    ip = ip_address(found)
    if not (fields.reachable(ip) or ip.is_loopback) or (ip.is_link_local and ip.version == 6):
        return None, fields.UNREACHABLE
    return found, None


def _bind(value: Any) -> fields.Checked:
    return list_of(listen_address, at_least=1)([value] if isinstance(value, str) else value)


def _numbers(value: Any) -> fields.Checked:
    """Numbers of servers, by service."""
    if not isinstance(value, dict) or not all(word(name)[0] for name in value):
        return None, "a mapping of services' names to numbers of servers is required."
    counts = {name: integer(1, 10_000, "a number of servers")(value[name]) for name in value}
    wrong = next((f"for {name} {why}" for name, (_count, why) in counts.items() if why), None)
    return (None, wrong) if wrong else ({name: count for name, (count, _why) in counts.items()}, None)


def _defaults(of: Type[Any]) -> Dict[str, Any]:
    return of._field_defaults


_SETTINGS, _HEALTH, _SERVICE = _defaults(settings.Settings), _defaults(settings.Health), _defaults(settings.Service)
_SERVER, _TIMEOUTS = _defaults(settings.Server), _defaults(settings.Timeouts)

CONFIGURATION = {
    "services": Field(list_of(anything), [], required=True),
    "monitors": Field(list_of(anything), []),
    "timeouts": Field(anything, {}),
    "maxconn": Field(integer(1, 1_000_000), _SETTINGS["maxconn"]),
    "retries": Field(integer(0, 100), _SETTINGS["retries"]),
    "workers": Field(integer(1, 64), _SETTINGS["workers"]),
    "hard_stop_after": fields.duration(0, WEEK, _SETTINGS["hard_stop_after"]),
    "stop_within": fields.duration(0, WEEK, _SETTINGS["stop_within"]),
    "status_socket": Field(fields.socket_path, _SETTINGS["status_socket"]),
    "page": Field(anything),
}

SERVICE = {
    "name": Field(_name, required=True),
    "bind": Field(_bind, [settings.ANY]),
    "port": Field(port, required=True),
    "mode": Field(one_of(*settings.MODES), _SERVICE["mode"]),
    "balance": Field(one_of(*settings.BALANCES), _SERVICE["balance"]),
    "servers": Field(list_of(anything, at_least=1), [], required=True),
    "check": Field(anything, {}),
    "maxconn": Field(integer(0, 1_000_000), _SERVICE["maxconn"]),
    "send_proxy": Field(boolean, _SERVICE["send_proxy"]),
    "allow": Field(list_of(fields.network), list(_SERVICE["allow"])),
    "routes": Field(list_of(anything), []),
}
# Clients of a service that name one of its hosts have servers of their own.
ROUTE = {
    "hosts": Field(list_of(names.host, at_least=1), [], required=True),
    **{key: SERVICE[key] for key in ("name", "balance", "servers", "check", "send_proxy")},
}

SERVER = {
    "name": Field(_name),
    "address": Field(server_address, required=True),
    "port": Field(port),
    "weight": Field(integer(0, 256), _SERVER["weight"]),
    "maxconn": Field(integer(0, 1_000_000), _SERVER["maxconn"]),
    "backup": Field(boolean, _SERVER["backup"]),
}

CHECK = {
    "type": Field(one_of(*settings.CHECK_TYPES), _HEALTH["type"]),
    "path": Field(fields.url_path, _HEALTH["path"]),
    "method": Field(one_of(*settings.METHODS), _HEALTH["method"]),
    "host": Field(fields.optional(word), _HEALTH["host"]),
    "sni": Field(fields.optional(word), _HEALTH["sni"]),
    "status": Field(fields.statuses, list(_HEALTH["status"])),
    "user": Field(fields.optional(word), _HEALTH["user"]),
    "verify": Field(boolean, _HEALTH["verify"]),
    "ca": Field(fields.optional(fields.path), _HEALTH["ca"]),
    "port": Field(port),
    "interval": fields.duration(0.1, 3600, _HEALTH["interval"]),
    "fast_interval": fields.duration(0, 3600, _HEALTH["fast_interval"]),
    "timeout": fields.duration(0.01, 3600, _HEALTH["timeout"]),
    "late_timeout": fields.duration(0, 3600, _HEALTH["late_timeout"]),
    "fall": Field(integer(1, 100), _HEALTH["fall"]),
    "rise": Field(integer(1, 100), _HEALTH["rise"]),
    "slow_start": fields.duration(0, 3600, _HEALTH["slow_start"]),
    "shutdown_sessions": Field(boolean, _HEALTH["shutdown_sessions"]),
    "tcp_user_timeout": fields.duration(0, 3600, _HEALTH["tcp_user_timeout"]),
    "steps": Field(list_of(anything), []),
}
# The types of check that a key is for, unless it is for all.
TYPES = {
    **dict.fromkeys(("path", "method", "status"), (settings.HTTP, settings.HTTPS)),
    "host": settings.NAMING,
    "user": settings.LOGINS,
    **dict.fromkeys(("sni", "verify", "ca"), (settings.HTTPS,)),
}
# What a step leaves out is the check's own.
STEP = {
    "type": Field(one_of(settings.TCP, settings.HTTP, settings.HTTPS)),
    **{key: CHECK[key]._replace(default=None) for key in ("port", "path", "method", "host", "sni", "status")},
}
CHECK_TIMES = ("interval", "fast_interval", "timeout", "late_timeout", "slow_start", "tcp_user_timeout")

MONITOR = {
    "name": Field(_name, required=True),
    "bind": Field(_bind, [settings.ANY]),
    "port": Field(port, required=True),
    "path": Field(fields.url_path, _defaults(settings.Monitor)["path"]),
    "at_least": Field(_numbers, {}),
}

# 0: another timeout counts instead.
OPTIONAL_TIMEOUTS = ("fin", "queue")
TIMEOUTS = {
    key: fields.duration(0 if key in OPTIONAL_TIMEOUTS else 0.001, WEEK, default) for key, default in _TIMEOUTS.items()
}

# The page is for the proxy's operators: by default it is not reachable from other hosts.
PAGE = {
    "bind": Field(_bind, ["127.0.0.1"]),
    "port": Field(port, required=True),
}


class Schemas(NamedTuple):
    """Which keys a service, its servers and its check have."""

    service: Schema
    server: Schema
    check: Schema


SCHEMAS = Schemas(SERVICE, SERVER, CHECK)


class Parts(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    services: List[Dict[str, Any]]
    monitors: List[Dict[str, Any]]
    timeouts: Dict[str, Any]
    page: Optional[Dict[str, Any]]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    services = [
        _with_routes(read_service(item, place_of("services", at, item), faults, SCHEMAS), at, faults)
        for at, item in enumerate(whole["services"])
    ]
    monitors = [
        read(MONITOR, item, place_of("monitors", at, item), faults) for at, item in enumerate(whole["monitors"])
    ]
    backends = [*services, *(route for service in services for route in service["routes"])]
    for place, items in (("services", backends), ("monitors", monitors)):
        faults.extend(same_names(items, place))
    page = read(PAGE, whole["page"], "page", faults) if whole["page"] is not None else None
    timeouts = read(TIMEOUTS, whole["timeouts"], "timeouts", faults)
    for at, service in enumerate(services):
        where = place_of("services", at, service)
        for place, backend in [(where, service), *routes_of(service, where)]:
            faults.extend(rules.of_shares(backend, whole["workers"], place))
    for at, monitor in enumerate(monitors):
        faults.extend(rules.of_monitor(monitor, services, place_of("monitors", at, monitor)))
    faults.extend(rules.clashes(rules.claims(services, monitors, page)))
    return Parts(whole, services, monitors, timeouts, page)


def read_service(item: Any, place: str, faults: Faults, schemas: Schemas) -> Dict[str, Any]:
    """Return a service with all defaults, those of its servers and of its check included.

    :param schemas: those of this file, or the collection's model's, which have some more keys
    """
    service = read(schemas.service, item, place, faults)
    service["check"] = _check(service["check"], f"{place}.check", faults, schemas.check)
    service["servers"] = [
        _server(server, service["port"], f"{place}.servers[{at}]", faults, schemas.server)
        for at, server in enumerate(service["servers"])
    ]
    faults.extend(rules.of_service(service, place, faults))
    return service


def routes_of(service: Dict[str, Any], place: str) -> List[Tuple[str, Dict[str, Any]]]:
    """Return the routes of a service, each with its place."""
    return [(place_of(f"{place}.routes", at, route), route) for at, route in enumerate(service.get("routes", ()))]


def _with_routes(service: Dict[str, Any], at: int, faults: Faults) -> Dict[str, Any]:
    """Return a service whose routes are read as well: each is reached where the service is."""
    place, found = place_of("services", at, service), []
    if service["routes"] and service["mode"] != settings.TCP and not refused(faults, place, "mode"):
        faults.append(f"{place}.routes need mode tcp: nothing but the server's name in TLS is read here.")
    where = {key: service[key] for key in ("bind", "port", "mode")}
    keys = SCHEMAS._replace(service={**ROUTE, **{key: SERVICE[key]._replace(required=False) for key in where}})
    for own, item in routes_of(service, place):
        if not isinstance(item, dict):
            read(ROUTE, item, own, faults)
            continue
        faults.extend(unknown_keys(item, list(ROUTE), own))
        given = {key: item[key] for key in ROUTE if key in item}
        found.append(read_service({**given, **where}, own, faults, keys))
    service["routes"] = found
    faults.extend(names.shadowed(found, place, True))
    return service


def _server(item: Any, default_port: Optional[int], place: str, faults: Faults, keys: Schema) -> Dict[str, Any]:
    """Read a server. A bare address is the common case; everything else has a default."""
    server = read(keys, {"address": item} if isinstance(item, str) else item, place, faults)
    server["name"] = server["name"] or server["address"]
    server["port"] = server["port"] or default_port
    return server


def _check(item: Any, place: str, faults: Faults, keys: Schema) -> Dict[str, Any]:
    check = read(keys, item, place, faults)
    given = [read(STEP, step, f"{place}.steps[{at}]", faults) for at, step in enumerate(check["steps"])]
    kinds = [check["type"], *(step["type"] for step in given if step["type"])]
    parts = [(f"{place}.steps[{at}]", step, [step["type"] or check["type"]]) for at, step in enumerate(given)]
    for where, part, types in [(place, check, kinds), *parts] if not refused(faults, place, "type") else []:
        faults.extend(_misplaced(part, types, where) if not refused(faults, where, "type") else [])
    if check["type"] in settings.LOGINS and not check["user"] and not refused(faults, place, "user"):
        faults.append(f"{place}.type is {check['type']}, but user is empty: set user to one without a password.")
    check["steps"] = [_step(step, check) for step in given]
    return check


def _misplaced(given: Dict[str, Any], kinds: List[str], place: str) -> Faults:
    """Return which keys a check, or a step of it, has no use for. An explicit default does no harm.

    :param kinds: its type, and those of its steps
    """
    return [
        f"{place}.{key} is for a check of type {' or '.join(types)}, and this one is {kinds[0]}: leave it out."
        for key, types in TYPES.items()
        if given.get(key) not in (None, CHECK[key].default) and not set(kinds).intersection(types)
    ]


def _step(given: Dict[str, Any], check: Dict[str, Any]) -> Dict[str, Any]:
    """Return a step with what it takes from its check."""
    kind = given["type"] or check["type"]
    usual = {key: check[key] if kind in TYPES.get(key, (kind,)) else CHECK[key].default for key in STEP}
    return {**usual, **{key: value for key, value in given.items() if value is not None}}


def _host_answers(found: Parts, _path: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    return authorities(found.services, host)


def authorities(services: List[Dict[str, Any]], host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check the files of authorities that services name on this host; return place, name and what is wrong."""
    every = [(place_of("services", at, service), service) for at, service in enumerate(services)]
    every += [route for place, service in every for route in routes_of(service, place)]
    files = [(f"{place}.check.ca", each["check"]["ca"]) for place, each in every]
    return [(place, name, host.authorities(name)) for place, name in files if name]


def _settings(found: Parts) -> settings.Settings:
    same = ("maxconn", "retries", "workers", "status_socket")
    timeouts = settings.Timeouts(**{key: fields.microseconds(value) for key, value in found.timeouts.items()})
    services = [each for item in found.services for each in _services_of(item)]
    return settings.Settings(
        services=tuple(each._replace(health=each.health._replace(late_connect=timeouts.connect)) for each in services),
        monitors=tuple(_monitor_of(item) for item in found.monitors),
        timeouts=timeouts,
        hard_stop_after=fields.microseconds(found.whole["hard_stop_after"]),
        stop_within=fields.microseconds(found.whole["stop_within"]),
        page=settings.Page(tuple(found.page["bind"]), found.page["port"]) if found.page else None,
        **{key: found.whole[key] for key in same},
    )


def _services_of(item: Dict[str, Any]) -> List[settings.Service]:
    """Return a service and its routes, which listen nowhere."""
    where = {"bind": [], "allow": [], "port": item["port"], "mode": item["mode"]}
    routes = [service_of({**where, **{key: route[key] for key in ROUTE}}) for route in item["routes"]]
    return [service_of(item), *(route._replace(route_of=item["name"]) for route in routes)]


def service_of(item: Dict[str, Any]) -> settings.Service:
    """Return the settings of a service that ``read_service`` has returned, without a fault."""
    renamed: Dict[str, Any] = {
        "bind": tuple(item["bind"]),
        "allow": tuple(item["allow"]),
        "servers": tuple(settings.Server(**server) for server in item["servers"]),
        "health": _health_of(item["check"]),
        "hosts": tuple(item.get("hosts", ())),
    }
    return settings.Service(**{key: item[key] for key in item if key not in (*renamed, "check", "routes")}, **renamed)


def _health_of(check: Dict[str, Any]) -> settings.Health:
    times = {key: fields.microseconds(check[key]) for key in CHECK_TIMES}
    steps = tuple(settings.Step(**_asked(step)) for step in check["steps"])
    return settings.Health(**{**_asked(check), **times, "steps": steps})


def _asked(given: Dict[str, Any]) -> Dict[str, Any]:
    return {**given, "port": given["port"] or 0, "status": tuple(given["status"])}


def _monitor_of(item: Dict[str, Any]) -> settings.Monitor:
    at_least = tuple(settings.Condition(*pair) for pair in item["at_least"].items())
    return settings.Monitor(**{**item, "bind": tuple(item["bind"]), "at_least": at_least})


def counts(found: settings.Settings) -> List[str]:
    """Say what there is in a configuration."""
    servers = [server for service in found.services for server in service.servers]
    return [counted(found.services, "service"), counted(servers, "server"), counted(found.monitors, "monitor")]


notes = no_notes
FORMAT = file.Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
