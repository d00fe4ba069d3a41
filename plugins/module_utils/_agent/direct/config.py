# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configuration of the direct plane: JSON, read into ``settings``. In the file times are seconds.

A service has the keys of the proxy's, as far as they make sense here: servers answer the clients themselves, so the
port is the same in front and behind, and nobody reads or limits what they say.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    counted,
    integer,
    list_of,
    one_of,
    place_of,
    port,
    read,
    repeated,
    same_names,
    shown,
)
from ..proxy import config as proxy
from ..proxy import rules
from . import settings
from .buckets import FEWEST, MOST, MOST_IN_ALL, MOST_SERVERS

LEAST = 256  # buckets
_ALL = settings.Settings._field_defaults


def _vips(value: Any) -> fields.Checked:
    """One VIP, or a list of them. A table matches addresses, so there is none for all of them."""
    return list_of(_vip, at_least=1)([value] if isinstance(value, str) else value)


def _vip(value: Any) -> fields.Checked:
    found, wrong = fields.address(value)
    if wrong or not fields.reachable(ipaddress.ip_address(found)):
        return None, "a VIP is required: one IPv4 or IPv6 address that a host can have."
    return found, None


def _buckets(value: Any) -> fields.Checked:
    found, wrong = integer(LEAST, MOST)(value)
    if wrong or found & (found - 1):
        return None, f"a power of two from {LEAST} to {MOST} is required."
    return found, None


def _only_tcp(value: Any) -> fields.Checked:
    if value == "tcp":
        return value, None
    return None, "nobody between clients and servers reads HTTP here: write tcp, or leave the service to a proxy."


def _not_here(value: Any) -> fields.Checked:
    """A key of the proxy's check that this plane has no use for, unless it says what is so anyway."""
    if not value:
        return value, None
    return None, "only a proxy can do that: leave it out, or leave the service to a proxy."


CONFIGURATION = {
    "interface": Field(fields.interface, required=True),
    "services": Field(list_of(anything, at_least=1), [], required=True),
    "down_file": Field(fields.optional(fields.path), _ALL["down_file"]),
    "stop_pause": fields.duration(0, 60, _ALL["stop_pause"]),
    "nft": Field(fields.path, _ALL["nft"]),
    "status_socket": Field(fields.socket_path, _ALL["status_socket"]),
}
SERVICE = {
    "name": proxy.SERVICE["name"],
    "bind": Field(_vips, [], required=True),
    "port": proxy.SERVICE["port"],
    "mode": Field(_only_tcp, "tcp"),
    "servers": proxy.SERVICE["servers"],
    "check": proxy.SERVICE["check"],
    "buckets": Field(_buckets, FEWEST),
    "proxy_port": Field(port),
    "new_connections": Field(one_of(settings.SERVERS, settings.HOST), settings.SERVERS),
}
SERVER = {key: proxy.SERVER[key] for key in ("name", "address", "port", "weight")}
CHECK = {
    **proxy.CHECK,
    "slow_start": Field(_not_here, 0),
    "shutdown_sessions": Field(_not_here, False),
    "tcp_user_timeout": Field(_not_here, 0),
    "late_timeout": Field(_not_here, 0),
}
SCHEMAS = proxy.Schemas(SERVICE, SERVER, CHECK)
# What a sentence begins with that is about a key.
KEY = re.compile(rf"^(?:{file.WHOLE}\.)?({'|'.join(CONFIGURATION)})(?=[\[ ])")


class Parts(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    services: List[Dict[str, Any]]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    services = []
    for at, item in enumerate(whole["services"]):
        place = place_of("services", at, item)
        services.append(proxy.read_service(item, place, faults, SCHEMAS))
        faults.extend(_of_service(services[-1], place))
    faults.extend(same_names(services, "services"))
    faults.extend(rules.clashes(rules.claims(services, [], None)))
    count = sum(service["buckets"] or 0 for service in services)
    if count > MOST_IN_ALL:
        faults.append(
            f"services have {count:,} buckets together, and nft needs some 800 MB for {MOST_IN_ALL:,}: give them "
            "fewer, or leave some services to a proxy."
        )
    return Parts(whole, services)


def _of_service(service: Dict[str, Any], place: str) -> Faults:
    """Return what makes a service none for direct return."""
    servers = [server for server in service["servers"] if server["address"]]
    faults = []
    if len(service["servers"]) == len(servers) == 1:
        faults.append(f"{place}.servers has one: name at least two, or leave the service to a proxy.")
    if len(service["servers"]) > MOST_SERVERS:
        faults.append(
            f"{place}.servers has {len(service['servers'])}: name {MOST_SERVERS} at most, because the shares of more "
            "would be uneven, or leave the service to a proxy."
        )
    for address in repeated([server["address"] for server in servers]):
        faults.append(f"{place}.servers has the address {address} twice: name each host once.")
    for server in servers:
        if service["port"] and server["port"] and server["port"] != service["port"]:
            faults.append(
                f"{place}.servers: {server['name']} has the port {server['port']}, and the service {service['port']}: "
                "a server answers clients itself, so give both the same port, or leave the service to a proxy."
            )
    strangers = {_version(each) for each in service["bind"]} | {_version(server["address"]) for server in servers}
    if len(strangers) > 1:
        faults.append(
            f"{place} has both IPv4 and IPv6 in bind and servers, {shown(service['bind'])} and "
            f"{shown([server['address'] for server in servers])}: make a service of each family."
        )
    return faults


def _version(address: str) -> int:
    return ipaddress.ip_address(address).version


def _host_answers(found: Parts, path: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check what is named on this host. The interface may come later."""
    return [
        *proxy.authorities(found.services, host),
        ("nft", found.whole["nft"], host.program(found.whole["nft"], "root")),
        (file.WHOLE, path, host.configuration(path)),
    ]


def _settings(found: Parts) -> settings.Settings:
    same = ("interface", "down_file", "nft", "status_socket")
    return settings.Settings(
        services=tuple(
            settings.Service(_balanced(item), item["buckets"], item["proxy_port"] or 0, item["new_connections"])
            for item in found.services
        ),
        stop_pause=fields.microseconds(found.whole["stop_pause"]),
        **{key: found.whole[key] for key in same},
    )


def _balanced(item: Dict[str, Any]) -> Any:
    """Return a service as the proxy would serve it."""
    usual = {key: field.default for key, field in proxy.SERVICE.items()}
    return proxy.service_of({**usual, **{key: value for key, value in item.items() if key in usual}})


def counts(found: settings.Settings) -> List[str]:
    """Say what there is in a configuration."""
    servers = [server for service in found.services for server in service.balanced.servers]
    return [counted(found.services, "service"), counted(servers, "server")]


def notes(found: settings.Settings, has_interface: Callable[[str], bool]) -> List[str]:
    """Say what is odd about a configuration, and no fault."""
    until = f"this host has no interface {found.interface} now; until it has, there is no table."
    return [] if has_interface(found.interface) else [until]


def as_variable(fault: str, prefix: str) -> str:
    """Return a fault about a key in the words of one who sets it as a variable of a role."""
    return KEY.sub(rf"{prefix}_\1", fault)


FORMAT = file.Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
