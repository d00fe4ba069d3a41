# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a server of direct return has: VIPs on its loopback interface, settings of the kernel, and its tables. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import rulesets
from ..settings import Service, Settings

# A server neither answers ARP requests for the VIPs nor asks in their name. IPv6 does neither for addresses of lo.
ARP = {"arp_ignore": "1", "arp_announce": "2"}
# An ICMP message that a packet is too big goes to the VIP, and so to the balancer. TCP finds that out by itself then,
# in either family (RFC 4821).
TCP = {"net/ipv4/tcp_mtu_probing": "1"}


class Setup(NamedTuple):
    """What a server is to have.

    :ivar addresses: on lo, with their prefix lengths
    :ivar kernel: settings by their names, which have slashes, because an interface's name may have dots
    :ivar ruleset: what nft loads
    """

    addresses: Tuple[str, ...]
    kernel: Dict[str, str]
    ruleset: str

    @property
    def checksum(self) -> str:
        return sha256(self.ruleset)


NOTHING = Setup((), {}, rulesets.removal_of_server())


class Found(NamedTuple):
    """What the kernel has.

    :ivar kernel: the settings that were asked for and that it has
    :ivar tables: the SHA-256 of each table as nft lists it, by family
    """

    addresses: Collection[str]
    kernel: Mapping[str, str]
    tables: Mapping[str, str]


class Record(NamedTuple):
    """What has been changed, until it is taken back.

    :ivar addresses: those that were added
    :ivar kernel: what the settings were before
    :ivar checksum: of the ruleset that nft has loaded
    :ivar tables: as ``Found`` has them, right after that
    """

    addresses: Sequence[str] = ()
    kernel: Mapping[str, str] = {}
    checksum: str = ""
    tables: Mapping[str, str] = {}
    nft: str = Settings._field_defaults["nft"]


class Changes(NamedTuple):
    """What leads from one state to the other, in this order.

    :ivar dropped: addresses to delete
    :ivar kernel: settings to make; before an address is added, or the server would answer for it
    :ivar added: addresses to add
    :ivar given_back: settings to put back; after an address is deleted, for the same reason
    """

    dropped: List[str]
    kernel: Dict[str, str]
    added: List[str]
    given_back: Dict[str, str]
    record: Record


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def setup(settings: Settings, own: Collection[str]) -> Setup:
    """Return what a server is to have.

    :param own: its addresses
    """
    vips = sorted({vip for service in settings.services for vip in service.balanced.bind})
    services = [_service(service, vip) for service in settings.services for vip in service.balanced.bind]
    interfaces = ("all", settings.interface) if any(":" not in vip for vip in vips) else ()
    return Setup(
        tuple(str(ipaddress.ip_interface(vip)) for vip in vips),
        {**{f"net/ipv4/conf/{name}/{key}": value for name in interfaces for key, value in ARP.items()}, **TCP},
        rulesets.of_server(services, settings.interface, own),
    )


def _service(service: Service, vip: str) -> rulesets.Service:
    port, proxy_port = service.balanced.port, service.proxy_port
    return rulesets.Service(vip, port, service.servers, service.buckets, proxy_port=proxy_port)


def strangers(settings: Settings, own: Collection[str]) -> List[str]:
    """Return a sentence for each service of which a host is no server."""
    return [
        f"{service.balanced.name} has the servers {', '.join(server.address for server in service.balanced.servers)}, "
        "and this host has none of these addresses: name this host among them, or leave the service out here."
        for service in settings.services
        if not any(server.address in own for server in service.balanced.servers)
    ]


def differences(wanted: Setup, found: Found, record: Record) -> List[str]:
    """Return a sentence for each part of a setup that is not in force."""
    sentences = [f"{address} is not on lo." for address in wanted.addresses if address not in found.addresses]
    sentences += [f"{address} is still on lo." for address in record.addresses if address not in wanted.addresses]
    sentences += [
        f"{name} is {found.kernel.get(name, 'not there')}, and {value} is required."
        for name, value in wanted.kernel.items()
        if found.kernel.get(name) != value
    ]
    if record.checksum != wanted.checksum:
        sentences.append("The table of second chances was not loaded from these services.")
    elif record.tables != found.tables:
        sentences.append("The table of second chances was changed or removed since it was loaded.")
    return sentences


def changes(wanted: Setup, found: Found, record: Record) -> Changes:
    """Return what leads to a setup. Of what is there already only what was recorded is ever taken back."""
    added = [address for address in wanted.addresses if address not in found.addresses]
    before = {name: record.kernel.get(name, found.kernel.get(name, "")) for name in wanted.kernel}
    kept = [address for address in wanted.addresses if address in record.addresses]
    return Changes(
        dropped=[address for address in record.addresses if address not in wanted.addresses],
        kernel={name: value for name, value in wanted.kernel.items() if found.kernel.get(name) != value},
        added=added,
        given_back={name: value for name, value in record.kernel.items() if _is_given_back(name, wanted, found)},
        record=record._replace(addresses=sorted({*kept, *added}), kernel=before, checksum="", tables={}),
    )


def _is_given_back(name: str, wanted: Setup, found: Found) -> bool:
    """Whether a setting is wanted no more, and still is as it was wanted."""
    asked_for = TCP.get(name) or ARP[name.rpartition("/")[2]]
    return name not in wanted.kernel and found.kernel.get(name) == asked_for


def both(before: Record, after: Record) -> Record:
    """Return what is recorded while one becomes the other."""
    addresses = sorted({*before.addresses, *after.addresses})
    return after._replace(addresses=addresses, kernel={**after.kernel, **before.kernel})


def record_of(data: Optional[Mapping[str, object]]) -> Record:
    """Return a record that was written as a mapping; an empty one for another version's."""
    known = data if isinstance(data, dict) and set(data) == set(Record._fields) else {}
    return Record(**known)
