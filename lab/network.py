"""Chooses networks that are unused on this machine, and the addresses in them.

Pure. The search starts at an offset that derives from the lab's id. So a lab gets the same network each time, if that
is free, and two labs rarely meet.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Iterable, List, Optional, Union

AnyNetwork = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# In the order of the search: a company's VPN often routes one of them as a whole.
POOLS = [ipaddress.IPv4Network(pool) for pool in ("10.224.0.0/12", "172.16.0.0/12", "192.168.0.0/16")]
# Wider routes than this are default routes in disguise (VPNs split 0.0.0.0/0 into halves).
WIDEST_CLAIM = 4

# No host gets these addresses: they are for the programs under test.
VIP, VIP2 = 100, 101
# The range from which podman assigns addresses. Each lab host has a fixed one outside it.
LEASES, LEASES6 = "240/28", "f000/116"


@dataclass(frozen=True)
class Network:
    """A lab's network. The host with number 11 is .11, and ::11 in IPv6, so both read alike."""

    subnet: ipaddress.IPv4Network
    subnet6: Optional[ipaddress.IPv6Network] = None

    def address(self, number: int) -> str:
        return str(self.subnet[number])

    def address6(self, number: int) -> Optional[str]:
        return str(self.subnet6[int(str(number), 16)]) if self.subnet6 else None

    def is_free_of(self, claims: Iterable[AnyNetwork]) -> bool:
        """Return whether none of these networks overlaps this one."""
        for claim in claims:
            if isinstance(claim, ipaddress.IPv4Network):
                if self.subnet.overlaps(claim):
                    return False
            elif self.subnet6 and self.subnet6.overlaps(claim):
                return False
        return True

    def podman_options(self, leads_out: bool = True) -> List[str]:
        """Return this network as options of `podman network create`.

        :param leads_out: podman's bridge is the way out. Where it is not, podman has no firewall rules, which would
            give a packet to another network the bridge's address even on its way to a router.
        """
        options = [] if leads_out else ["--internal"]
        options += ["--subnet", str(self.subnet), "--ip-range", str(self.subnet[0])[:-1] + LEASES]
        if self.subnet6:
            leases6 = str(self.subnet6[0]) + LEASES6
            options += ["--ipv6", "--subnet", str(self.subnet6), "--ip-range", leases6]
        return options


def choose(lab_id: str, taken: Iterable[AnyNetwork], ipv6: bool) -> Network:
    """Return the first network that overlaps nothing in `taken`, searching each pool from this lab's offset."""
    claims = [network for network in taken if network.prefixlen >= WIDEST_CLAIM]
    digest = hashlib.sha256(lab_id.encode()).digest()
    for pool in POOLS:
        count = 2 ** (24 - pool.prefixlen)
        for step in range(count):
            index = (int.from_bytes(digest[:4], "big") + step) % count
            network = Network(_slash24(pool, index), _ula(digest, index) if ipv6 else None)
            if network.is_free_of(claims):
                return network
    raise ValueError("no private /24 is free: everything in {} is routed".format(", ".join(map(str, POOLS))))


def parse(networks: Iterable[str]) -> List[AnyNetwork]:
    """Parse networks from routing tables; skip what is no network, such as `default`."""
    parsed: List[AnyNetwork] = []
    for text in networks:
        try:
            parsed.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            continue
    return parsed


def _slash24(pool: ipaddress.IPv4Network, index: int) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network((int(pool[0]) + 256 * index, 24))


def _ula(digest: bytes, index: int) -> ipaddress.IPv6Network:
    """Return a unique local /64 (RFC 4193): fd, 40 random bits, 16 bits of subnet."""
    prefix = b"\xfd" + digest[4:9] + index.to_bytes(2, "big")
    return ipaddress.IPv6Network((int.from_bytes(prefix + bytes(8), "big"), 64))
