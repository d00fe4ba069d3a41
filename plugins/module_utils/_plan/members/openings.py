# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which ports the firewall of a member opens, and for whom. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Collection, Dict, List, Mapping, Sequence

from ..model import bind_line
from ..model.plan import Firewall, Router

Clients = Dict[int, List[str]]  # the networks that may connect to a port; none for everybody


def of_listeners(listeners: Sequence[Mapping[str, Any]]) -> Clients:
    """Return the clients of services. A port that two of them share is open for the clients of both."""
    found: Clients = {}
    for listener in listeners:
        port, allowed = listener["port"], bind_line.clients(listener)
        earlier = found.setdefault(port, list(allowed))
        found[port] = list(dict.fromkeys([*earlier, *allowed])) if earlier and allowed else []
    return found


def firewall(clients: Clients, router: Router, others: Collection[str] = ()) -> Firewall:
    """Return what a firewall lets in. The other members connect, too: they verify that each VIP answers.

    :param others: their addresses on the links of the VIPs
    """
    members = sorted({*router.peers, *others})
    return Firewall(
        ports=[port for port, networks in clients.items() if not networks],
        restricted_ports=[
            {"port": port, "networks": [*networks, *_outside(networks, members)]}
            for port, networks in clients.items()
            if networks
        ],
        vrrp_peers=router.peers,
        interfaces=router.interfaces,
    )


def _outside(networks: Sequence[str], addresses: Sequence[str]) -> List[str]:
    known = [ipaddress.ip_network(network) for network in networks]
    return [each for each in addresses if not any(ipaddress.ip_address(each) in network for network in known)]
