# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where raw lines of haproxy.cfg listen, with which protocol, and for whom. Pure.

These are all the words of HAProxy's manual that open a socket: `bind` and `stats socket` anywhere, `dgram-bind` for
UDP, and the addresses of a section `peers`, one of which is the host's own. The network test shows the same lines to
HAProxy, and compares where it listens.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, Iterator, List, Mapping, Match, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, place_of
from ..._agent.proxy import rules
from ..._agent.proxy.rules import Claim
from ..._agent.proxy.settings import ANY, ANY6, Place
from .raw_lines import SECTION

LISTENS = re.compile(r"\s*(?P<word>bind|dgram-bind|stats\s+socket)\s+(?P<address>[^\s#]+)")
PEER = re.compile(r"\s*(?P<word>peer|server)\s+\S+\s+(?P<address>[^\s#]+)")
PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
LAST_PORT = 65535
TCP, UDP = "tcp", "udp"
OF_UDP = re.compile(r"(udp|quic)[46]?@")
# Listeners that no other host reaches.
OTHER_KINDS = re.compile(r"/|(unix|abns|abnsz|fd|sockpair|rhttp|uxst|uxdg)@")
SHARING = frozenset(("process", "thread"))  # for parts of the process, which may have one place


class Raw(NamedTuple):
    """A listener of a raw line."""

    claim: Claim
    protocol: str = TCP
    interface: str = ""  # through which alone its clients come
    shares: bool = False  # its place, by the user's choice
    peers: Tuple[str, ...] = ()  # the addresses that alone connect

    @property
    def is_plain(self) -> bool:
        """Whether it meets every other listener of TCP at its place."""
        return self.protocol == TCP and not self.interface and not self.shares


def of_services(services: Sequence[Mapping[str, Any]], place: str) -> List[Raw]:
    """Return where raw lines of services listen.

    :param place: the services' variable
    """
    return [
        raw
        for at, service in enumerate(services)
        for raw in of_lines(service["frontend_lines"], f"{place_of(place, at, service)}.frontend_lines")
    ]


def of_lines(lines: Sequence[str], place: str) -> List[Raw]:
    """Return where raw lines listen."""
    return [raw for section, own in _sections(lines) for raw in (_of_peers if section == "peers" else _of)(own, place)]


def _sections(lines: Sequence[str]) -> List[Tuple[str, List[str]]]:
    """Return the lines of each section, with the word with which it begins; '' before the first one."""
    found: List[Tuple[str, List[str]]] = [("", [])]
    for line in lines:
        begins = SECTION.match(line)
        found += [(begins[1], [])] if begins else []
        found[-1][1].append(line)
    return found


def _of_peers(lines: Sequence[str], place: str) -> List[Raw]:
    """Return where a host listens for its peers: at a `bind` line, or at that of these addresses which is its own."""
    there = [raw for line in lines for raw in _of_line(PEER.match(line), line, place)]
    peers = tuple(raw.claim.place.address for raw in there if not is_loopback(raw.claim.place))
    return [raw._replace(peers=peers) for raw in _of(lines, place) or there]


def _of(lines: Sequence[str], place: str) -> List[Raw]:
    return [raw for line in lines for raw in _of_line(LISTENS.match(line), line, place)]


def _of_line(found: Optional[Match[str]], line: str, place: str) -> Iterator[Raw]:
    options = line[found.end() :].split() if found else []
    if not found or "namespace" in options:  # another network, which this host's firewall does not know
        return
    is_datagram, owner = found["word"] == "dgram-bind", f"'{found.group().strip()}' of {place}"
    interface = options[options.index("interface") + 1 :][:1] if "interface" in options else []
    for address in found["address"].replace('"', "").split(","):
        protocol = UDP if is_datagram or OF_UDP.match(address) else TCP
        for where in _places(address, "v6only" in options):
            yield Raw(Claim(owner, where), protocol, "".join(interface), not SHARING.isdisjoint(options))


def _places(text: str, v6only: bool) -> Iterator[Place]:
    """Yield the places of an address as haproxy reads it. What only the host could resolve has none."""
    if OTHER_KINDS.match(text):
        return
    family, _at, rest = text.rpartition("@")
    host, _colon, ports = rest.rpartition(":")
    found = PORTS.fullmatch(ports)
    if not found or not 0 < int(found[1]) <= int(found[2] or found[1]) <= LAST_PORT:  # which haproxy refuses
        return
    for address in _addresses(host.strip("[]"), family.endswith("6"), v6only):
        for port in range(int(found[1]), int(found[2] or found[1]) + 1):
            yield Place(address, port)


def _addresses(host: str, is_ipv6: bool, v6only: bool) -> List[str]:
    if host in ("", ANY, "0.0.0.0"):
        return [ANY6 if is_ipv6 else ANY]
    if host == ANY6:
        return [ANY6] if v6only else [ANY6, ANY]
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return []


def plain(raws: Sequence[Raw]) -> List[Claim]:
    """Return those that meet every other listener of TCP at their place."""
    return [raw.claim for raw in raws if raw.is_plain]


def clashes(raws: Sequence[Raw]) -> Faults:
    """Return a sentence for each two that meet each other alone: by UDP, or through one interface."""
    groups: Dict[Tuple[str, str], List[Claim]] = {}
    for raw in raws:
        if not raw.is_plain and not raw.shares:
            groups.setdefault((raw.protocol, raw.interface), []).append(raw.claim)
    return [fault for group in groups.values() for fault in rules.clashes(group)]


def is_loopback(place: Place) -> bool:
    return place.address != ANY and ipaddress.ip_address(place.address).is_loopback


def open_ports(raws: Sequence[Raw], protocol: str) -> List[int]:
    """Return the ports of a protocol that every other host may reach."""
    there = [raw for raw in raws if raw.protocol == protocol and not raw.peers]
    return sorted({raw.claim.place.port for raw in there if not is_loopback(raw.claim.place)})


def restricted_ports(raws: Sequence[Raw]) -> List[Dict[str, Any]]:
    """Return the ports for peers, each with their addresses, as `firewall_openings` takes them."""
    found: Dict[int, List[str]] = {}
    for raw in raws:
        if raw.peers and not is_loopback(raw.claim.place):
            found.setdefault(raw.claim.place.port, []).extend(raw.peers)
    return [{"port": port, "networks": list(dict.fromkeys(peers))} for port, peers in sorted(found.items())]
