# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whom the firewall of a member lets in: clients at the ports of its balancer, and the VRRP of the other members.

The kernel's own ruleset is asked, whoever has loaded it: firewalld, nftables.service, an administrator's `nft -f`.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ..firewall import passage, ruleset, ufw
from ..firewall.model import FirewallError, Opening
from ..firewall.nftables import LIST
from ..firewall.passage import Packet
from .reader import Reader

KERNEL = "/sys/module/nf_tables"  # while it has, or had, rules of nftables
LEGACY = ("/proc/net/ip_tables_names", "/proc/net/ip6_tables_names")  # the tables that nft never shows
NOT_SHOWN = "it has rules of iptables, which nft does not show"
MULTICAST = {False: "224.0.0.18", True: "ff02::12"}  # of VRRP (RFC 9568, 5.1.1.2), by whether it is IPv6


Instances = Sequence[Mapping[str, Any]]


def read(reader: Reader, ports: Mapping[str, Sequence[int]], instances: Instances) -> Dict[str, Any]:
    """Return ``{closed, open, vrrp, chain, unknown}``: what is refused for certain, and why not all is known.

    :param ports: at which its balancer listens, for each VIP
    :param instances: of its router
    """
    found: Dict[str, Any] = {"closed": [], "open": [], "vrrp": [], "chain": "", "unknown": ""}
    rules, unknown = ruleset_of(reader)
    if not rules:
        return {**found, "unknown": unknown}
    redirected, links = passage.redirects(rules), _links(instances)
    clients = [Packet(vip, port, "", links.get(vip, ""), redirected) for vip in ports for port in ports[vip]]
    routers = [packet for instance in instances for packet in _of_vrrp(instance)]
    refused = [(packet, passage.refusing(rules, packet)) for packet in [*clients, *routers]]
    chains = [" ".join(name) for _packet, name in refused if name]
    opaque = [packet for packet, name in refused if not name and passage.is_unknown(rules, packet)]
    opened = _opened_with_ufw(reader) if opaque else set()
    return {
        "closed": [[packet.target, packet.port] for packet, name in refused if name and packet.port],
        "open": [[packet.target, packet.port] for packet, name in refused if not name and packet.port],
        "vrrp": list(dict.fromkeys(packet.source for packet, name in refused if name and not packet.port)),
        "chain": next(iter(chains), ""),
        "unknown": unknown or ("" if all(_is_opened(packet, opened) for packet in opaque) else NOT_SHOWN),
    }


def _links(instances: Instances) -> Dict[str, str]:
    """Return where the clients of each VIP come in."""
    return {
        vip: instance.get("carriers", {}).get(vip, instance["interface"])
        for instance in instances
        for vip in instance["addresses"]
    }


def _of_vrrp(instance: Mapping[str, Any]) -> List[Packet]:
    """Return what its peers send to a router; by multicast that is from addresses that the router does not know."""
    is_v6 = any(":" in address for address in instance["addresses"])
    own, link = instance["source"] or "", instance["interface"]
    peers = [Packet(own if (":" in own) == (":" in peer) else "", 0, peer, link) for peer in instance["peers"]]
    return peers or [Packet(MULTICAST[is_v6], 0, "", link)]


def _opened_with_ufw(reader: Reader) -> Set[Opening]:
    """Return what this collection has opened with an active ufw, which loads its rules with iptables."""
    program = reader.find("ufw")
    if not program or not reader.run([program, "status"])[1].startswith("Status: active"):
        return set()
    return ufw.parse_added(reader.run([program, "show", "added"])[1]).ours


def _is_opened(packet: Packet, opened: Set[Opening]) -> bool:
    """Whether a packet is let in: a client from somewhere at least, and VRRP by multicast from one peer at least."""
    found = [opening for opening in opened if opening.port == packet.port]
    return any(opening.source == packet.source or not packet.source for opening in found)


def ruleset_of(reader: Reader) -> Tuple[ruleset.Ruleset, str]:
    """Return the kernel's rules, and why they are not known, or not all of them."""
    nft = reader.find("nft")
    legacy = NOT_SHOWN if any(reader.text(path).strip() for path in LEGACY) else ""
    if not nft:
        return {}, legacy or ("nft is missing (package nftables)" if os.path.isdir(KERNEL) else "")
    code, out, err = reader.run([nft, *LIST[1:]])
    if code:
        return {}, f"nft says: {' '.join((err or out).split()) or f'exit code {code}'}"
    try:
        return ruleset.parse(out), legacy
    except FirewallError as error:
        return {}, str(error).rstrip(".")
