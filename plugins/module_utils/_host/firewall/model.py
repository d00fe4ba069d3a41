# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the firewall managers have in common: openings, and the changes that make them.

A manager's module reads the host and returns a ChangeSet. Nothing changes until its actions are applied, so check mode
and the diff need no code of their own.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Iterable, List, Mapping, NamedTuple, Sequence, Tuple, Union

from .system import Host

MARK = "onprem.lb"  # the comment that distinguishes our rules from the administrator's, where rules have comments
VRRP = 112
TCP, UDP = PROTOCOLS = ("tcp", "udp")


class FirewallError(Exception):
    """One sentence for the user."""


class Opening(NamedTuple):
    """A port for all sources, or for one network; or, without a port, protocol 112 from one peer."""

    port: int = 0
    source: str = ""  # an address, or a network with its prefix length
    protocol: str = TCP  # of the port

    @property
    def is_vrrp(self) -> bool:
        return not self.port

    @property
    def family(self) -> str:
        """ip or ip6; empty for a port for all sources, which opens for both."""
        if not self.source:
            return ""
        return "ip6" if ":" in self.source else "ip"

    def __str__(self) -> str:
        return f"{f'{self.protocol} {self.port}' if self.port else 'vrrp'} from {self.source or 'anywhere'}"


class Run(NamedTuple):
    """Run a command, which must succeed."""

    args: Tuple[str, ...]
    data: str = ""


class Write(NamedTuple):
    """Replace a file as a whole."""

    path: str
    content: str
    mode: int


class Remove(NamedTuple):
    """Remove a file, and its directory if that is empty then."""

    path: str


Action = Union[Run, Write, Remove]


class ChangeSet(NamedTuple):
    """Our openings before and after, and the actions between."""

    manager: str
    openings: List[str]
    before: List[str]
    after: List[str]
    actions: List[Action]
    message: str = ""
    warnings: Tuple[str, ...] = ()


def wanted_openings(
    ports: Iterable[object], peers: Iterable[str], restricted: Iterable[Mapping[str, Any]] = ()
) -> List[Opening]:
    """Return the user's openings, each once, in an order that does not depend on theirs.

    :param restricted: ``{port, networks, protocol}``; a port that is among `ports`, too, is open for everybody
    """
    openings = {Opening(port, "", protocol) for port, protocol in map(_parse_port, ports)}
    openings.update(Opening(source=parse_peer(peer)) for peer in peers)
    for item in restricted:
        port, _tcp = _parse_port(item["port"], (TCP,))
        if not item["networks"]:
            raise FirewallError(f"Port {port} is restricted to no network: name one, or open the port to everybody.")
        protocol = item.get("protocol") or TCP
        networks = {Opening(port, parse_network(network), protocol) for network in item["networks"]}
        openings |= set() if Opening(port, "", protocol) in openings else networks
    return in_order(openings)


def in_order(openings: Iterable[Opening]) -> List[Opening]:
    def key(opening: Opening) -> Tuple[int, str, str, int, int]:
        source = ipaddress.ip_interface(opening.source or 0)
        return opening.port or 65536, opening.protocol, opening.family, int(source), source.network.prefixlen

    return sorted(openings, key=key)


def _parse_port(value: object, protocols: Sequence[str] = PROTOCOLS) -> Tuple[int, str]:
    """Return a port and its protocol, which is TCP unless it is named."""
    number, _slash, protocol = str(value).strip().partition("/")
    if (protocol or TCP) not in protocols:
        known = " or ".join(f"8443/{each}" for each in protocols)
        raise FirewallError(f"Port {value} has an unknown protocol: write 8443, or {known}.")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 65535):
        raise FirewallError(f"Port {value} is not a number from 1 to 65535.")
    return int(number), protocol or TCP


def parse_peer(value: str) -> str:
    # A link-local peer may come with its interface; firewalls match the bare address.
    text = str(value).strip().partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise FirewallError(f"VRRP peer {value} is not an IPv4 or IPv6 address.") from None
    if address.is_multicast or address.is_unspecified:
        raise FirewallError(f"VRRP peer {value} is not a unicast address: name the address that the peer sends from.")
    return str(address)


def parse_network(value: object) -> str:
    found = as_source(value)
    if not found:
        raise FirewallError(f"Network {value} is neither a network such as 192.0.2.0/24 nor an address.")
    return found


def as_source(value: object) -> str:
    """Return an address or a network in our spelling, or nothing if it is neither."""
    try:
        found = ipaddress.ip_network(str(value))
    except ValueError:
        return ""
    return str(found.network_address if found.prefixlen == found.max_prefixlen else found)


def output_of(host: Host, *args: str) -> str:
    """Return the output of a command that must succeed."""
    return _run(host, Run(args))


def _run(host: Host, command: Run) -> str:
    code, out, err = host.run(command.args, command.data)
    if code != 0:
        raise FirewallError(failure(command.args, code, err or out))
    return out


def failure(args: Sequence[str], code: int, output: str) -> str:
    return "{} failed: {}".format(" ".join(args), " ".join(output.split()) or f"exit code {code}")


def apply(actions: Iterable[Action], host: Host) -> None:
    for action in actions:
        if isinstance(action, Write):
            host.write(action.path, action.content, action.mode)
        elif isinstance(action, Remove):
            host.remove(action.path)
        else:
            _run(host, action)
