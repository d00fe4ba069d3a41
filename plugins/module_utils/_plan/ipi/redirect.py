# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The redirect VIP:6443 -> VIP:9445 of a master: kube-apiserver binds 6443 there, and haproxy binds 9445.

While a cluster bootstraps, port 22623 of the machine config server is redirected in the same way.

Every master has it, whether it holds a VIP or not. It acts only where the VIP is one of the host's own addresses, and
so moves with the VIP. It leaves alone: connections to a node's own address, haproxy's health checks and connections to
the masters, and what a member, or a pod on it, sends to a VIP that another member holds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, List, Mapping, Sequence, Union

from ..._agent.config.schema import port as check_port
from ..._agent.config.schema import shown

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

TABLE = "inet onprem_lb_api"
# "add" changes nothing where the table exists, and lets "delete" succeed where it does not: "destroy" needs nft 1.0.8.
DELETE = f"add table {TABLE}; delete table {TABLE}"
LOAD, UNLOAD = "/usr/sbin/nft --file /etc/onprem-lb/api-redirect.nft", f"/usr/sbin/nft '{DELETE}'"

# A base chain for each hook, and one chain with the rules for both. NAT in the family inet needs Linux 5.2 (RHEL 8 has
# it backported); every supported platform has it.
#
# One transaction replaces the old table: the redirect is never absent, and no rule for a former VIP remains. Open
# connections keep their translation, which conntrack holds.
#
# Priority -110 is before dstnat (-100): the first chain that translates a connection wins, and kube-proxy and others
# use dstnat. The number is written out because nft does not know the name dstnat for the hook output.
RULESET = """\
# Managed by Ansible, onprem.lb: {ports}, where this host holds it.
# It is taken away by: nft '{delete}'
add table {table}
delete table {table}
table {table} {{
    # From outside, and from pods on this host.
    chain prerouting {{
        type nat hook prerouting priority -110; policy accept;{not_redirected}
        jump redirect_vips
    }}
    # From this host itself.
    chain output {{
        type nat hook output priority -110; policy accept;
        jump redirect_vips
    }}
    chain redirect_vips {{
        # Who holds the VIP redirects, and who does not passes on: the holder may have no haproxy just now.
        fib daddr type != local return
        # A connection that is open already has gone to {first} itself, and stays there.
        tcp flags & (fin | syn | rst | ack) != syn return
{rules}
    }}
}}
"""


# The API server answers it itself, whichever master holds the VIP.
NOT_REDIRECTED = """
        iifname "{}" return"""


def ruleset(vips: Sequence[Any], ports: Mapping[Any, Any], direct_interface: str = "") -> str:
    """Return an nft file that puts the redirect in place of whatever redirect there was.

    :param vips: addresses of both families, each with or without a prefix length
    :param ports: by port of the VIPs, the one to which it leads
    :param direct_interface: where what comes in is for direct return, and not redirected; '' for none
    :raises ValueError: with a sentence, if they cannot be redirected
    """
    pairs = {_port(port): _port(to_port) for port, to_port in ports.items()}
    for port, to_port in pairs.items():
        if port == to_port:
            raise ValueError(f"The redirect's two ports are both {port}: haproxy must listen on another one.")
    rules = "\n".join(f"        {_rule(vip, *pair)}" for vip in _addresses(vips) for pair in pairs.items())
    said = ", ".join(f"{port} of a VIP goes to {to_port} of the same VIP" for port, to_port in pairs.items())
    first = " and ".join(map(str, pairs))
    not_redirected = NOT_REDIRECTED.format(direct_interface) if direct_interface else ""
    known = {"table": TABLE, "delete": DELETE, "not_redirected": not_redirected}
    return RULESET.format(**known, rules=rules, ports=said, first=first)


def _rule(vip: Address, port: int, to_port: int) -> str:
    # The statement "redirect" would be wrong: in prerouting it translates to the first address of the incoming
    # interface instead of the VIP, in output to loopback's. Under some network plugins pods would lose their replies,
    # and haproxy's log would not show the VIP.
    if vip.version == 4:
        return f"ip daddr {vip} tcp dport {port} dnat ip to {vip}:{to_port}"
    return f"ip6 daddr {vip} tcp dport {port} dnat ip6 to [{vip}]:{to_port}"


def _port(given: Any) -> int:
    found, wrong = check_port(given)
    if wrong:
        raise ValueError(f"The redirect's port is {shown(given)}: {wrong}")
    return int(found)


def _addresses(vips: Any) -> List[Address]:
    """Return each VIP once, sorted, so that the user's order does not change the file."""
    if isinstance(vips, str) or not isinstance(vips, Sequence) or not vips:
        raise ValueError(f"The redirect's VIPs are {vips!r}: a list of at least one address is required.")
    return sorted({_address(vip) for vip in vips}, key=lambda vip: (vip.version, int(vip)))


def _address(given: Any) -> Address:
    try:
        # ipaddress would silently drop a zone, as in fe80::1%eth0.
        found = ipaddress.ip_interface(str(given).replace("%", " ")).ip
    except ValueError:
        raise ValueError(
            f"The redirect's VIP {given!r} is not an address: an IPv4 or IPv6 address is required."
        ) from None
    if found.is_multicast or found.is_loopback or found.is_unspecified or found.is_link_local:
        raise ValueError(
            f"The redirect's VIP {given} is not an address that a client can use: choose one of the subnet."
        )
    return found
