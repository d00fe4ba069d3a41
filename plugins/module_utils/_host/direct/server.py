# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a host can be a server of direct return; each obstacle is a sentence with its mend. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterator, List, Mapping, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._agent.direct.server.setup import strangers
from ..._agent.direct.settings import Service, Settings
from ..firewall import passage
from ..firewall.passage import Packet
from .host import Host

STRICT = 1  # rp_filter
EVERY_ADDRESS = {4: "0.0.0.0", 6: "::"}


def obstacles(settings: Settings, host: Host) -> Faults:
    """Return what keeps a host from being a server."""
    here = [each for each in host.addresses if each["interface"] == settings.interface]
    if not here:
        others = ", ".join(sorted({each["interface"] for each in host.addresses}))
        return [f"interface is {settings.interface!r}, which has no address on this host: name one of {others}."]
    foreign = strangers(settings, [each["address"] for each in host.addresses])
    return [
        *foreign,
        *_of_reverse_paths(settings, host),
        *(fault for service in settings.services for fault in _of_vips(service, host)),
        *(fault for service in settings.services for fault in _of_listeners(service, host)),
        *(fault for service in settings.services for fault in _of_segment(service, settings.interface, here)),
        *(fault for service in settings.services for fault in _of_firewall(service, host, settings.interface, here)),
    ]


def _of_reverse_paths(settings: Settings, host: Host) -> Iterator[str]:
    """The kernel uses the larger one of an interface's number and that of all; IPv6 has no such filter."""
    names = ("all", settings.interface)
    filters = {name: int(host.rp_filters.get(name) or 0) for name in names}
    has_ipv4 = any(":" not in vip for service in settings.services for vip in service.balanced.bind)
    if has_ipv4 and max(filters.values()) == STRICT:
        strict = "all" if filters["all"] == STRICT else settings.interface
        yield (
            f"net.ipv4.conf.{strict}.rp_filter is {STRICT}, strict: this host would drop what balancers hand on from a "
            f"client to which it has another route. Set net.ipv4.conf.{settings.interface}.rp_filter to 2."
        )


def _of_vips(service: Service, host: Host) -> Iterator[str]:
    for vip in service.balanced.bind:
        holders = [each["interface"] for each in host.addresses if each["address"] == vip]
        strangers_to_vrrp = sorted({*holders}) if vip not in host.routed else []
        if strangers_to_vrrp:
            yield (
                f"{vip}, a VIP of {service.balanced.name}, is on {', '.join(strangers_to_vrrp)} of this host, and no "
                "VRRP router here has it: delete it there, because a server has its VIPs on lo alone."
            )
        if any(route["gateway"] == vip for route in host.defaults):
            yield (
                f"{vip}, a VIP of {service.balanced.name}, is the gateway of this host's default route: a server sends "
                "its answers past the balancers, so name another gateway."
            )


def _of_listeners(service: Service, host: Host) -> Iterator[str]:
    """A socket that is bound to the VIP looks to the table of second chances as a connection does.

    The program of a host that is a server already may be down: balancers notice that by themselves.
    """
    name, port = service.balanced.name, service.balanced.port
    there = [(_address(each["address"]), each["program"]) for each in host.listeners if each["port"] == port]
    if host.is_server and not there:
        return
    for vip in map(ipaddress.ip_address, service.balanced.bind):
        every = EVERY_ADDRESS[vip.version]
        bound = [program for address, program in there if address == vip]
        if bound:
            yield (
                f"{bound[0]} listens at {vip} port {port}, the VIP of {name}: have it listen at {every}, or "
                "connections of other servers would be reset."
            )
        elif not any(address.is_unspecified and address.version >= vip.version for address, _program in there):
            yield _unserved(f"{vip} port {port} ({name})", every, there)


def _of_firewall(service: Service, host: Host, interface: str, here: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A server behind a proxy may let nobody in but the balancers, which are hosts of its link."""
    for vip in service.balanced.bind:
        port, redirected = service.balanced.port, passage.redirects(host.rules)
        chain = passage.refusing(host.rules, Packet(vip, port, "", interface, redirected, tuple(_networks(here))))
        if chain:
            yield (
                f"The firewall of this host lets no client in at {vip} port {port} ({service.balanced.name}), by the "
                f"chain {' '.join(chain)}: balancers hand on the packets of clients as they are, so open the port to "
                "the networks of the clients."
            )


def _networks(here: Sequence[Mapping[str, Any]]) -> List[Any]:
    return [ipaddress.ip_interface(f"{each['address']}/{each['prefix']}").network for each in here]


def _unserved(place: str, every: str, there: List[Tuple[Any, str]]) -> str:
    only = ", ".join(f"{program} at {address} alone" for address, program in there) or "nothing"
    return f"This host would not answer at {place}, because {only} listens on that port: start a server at {every}."


def _address(text: str) -> Any:
    found = ipaddress.ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found


def _of_segment(service: Service, interface: str, here: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the servers that are not on the link, this host among them."""
    networks = _networks(here)
    for server in service.balanced.servers:
        address = ipaddress.ip_address(server.address)
        if not any(address in network for network in networks):
            yield (
                f"{server.address}, a server of {service.balanced.name}, is in no network of {interface}: all servers "
                "need to be on one link, so name its address there, or leave the service to a proxy."
            )
