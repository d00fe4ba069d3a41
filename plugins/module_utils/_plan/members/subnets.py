# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which interface of a host can carry a VIP: the one whose subnet contains it. Uses netaddr."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

try:
    import netaddr

    NETADDR_MISSING = None
except ImportError as missing:  # the filters report it
    NETADDR_MISSING = missing


class Placement(NamedTuple):
    """An interface that can carry a VIP, and the member's own address on it."""

    interface: str
    address: str


def find_placement(
    vip: str, addresses: List[Dict[str, Any]], floating: Set[str], wanted: str, prefix: str, held_as: int
) -> Tuple[Optional[Placement], str]:
    """Return the interface for a VIP on one host, or None and why there is none.

    :param addresses: ``{interface, address, prefix, mac}`` of the host
    :param floating: every VIP of the layout; a VIP that a member holds now is not its own address
    :param wanted: the interface that the user named, or ''
    :param prefix: of the variables by which the user does that
    :param held_as: the prefix length with which a member that holds the VIP now has it
    """
    target = netaddr.IPAddress(vip)
    own = [
        found
        for found in addresses
        if netaddr.IPAddress(found["address"]).version == target.version
        and found["address"] not in floating
        and found["interface"] != "lo"
    ]
    for found in addresses:
        if found["address"] == vip and found["prefix"] != held_as and found["interface"] != "lo":
            return None, f"VIP {vip} is this host's own address on {found['interface']}: choose one that nobody has."
    if wanted:
        return on_named_interface(vip, addresses, floating, wanted, f"{prefix}_interface")
    near = [found for found in own if target in netaddr.IPNetwork(f"{found['address']}/{found['prefix']}")]
    if not near:
        known = ", ".join(f"{found['interface']} {found['address']}/{found['prefix']}" for found in own) or "none"
        return (
            None,
            f"VIP {vip} is in no interface's subnet (there are: {known}): correct the VIP or the interface.",
        )
    longest = max(found["prefix"] for found in near)
    best = [found for found in near if found["prefix"] == longest]
    names = sorted({found["interface"] for found in best})
    if len(names) > 1:
        return None, f"VIP {vip} is in the subnet of {' and '.join(names)}: say which with {prefix}_interface."
    return Placement(best[0]["interface"], best[0]["address"]), ""


def on_named_interface(
    vip: str, addresses: List[Dict[str, Any]], floating: Set[str], wanted: str, variable: str
) -> Tuple[Optional[Placement], str]:
    """Return the placement on the interface that a variable names, even if the VIP is not in one of its subnets.

    :param addresses: as `find_placement` takes them, and likewise the VIPs
    """
    version = netaddr.IPAddress(vip).version
    for found in addresses:
        if found["interface"] == wanted != "lo" and found["address"] not in floating:
            own = netaddr.IPAddress(found["address"])
            if own.version == version and not own.is_link_local():
                return Placement(wanted, found["address"]), ""
    names = sorted({found["interface"] for found in addresses})
    if wanted not in names:
        return None, f"{variable} is '{wanted}', which is not there: there are {', '.join(names)}."
    return None, f"{variable} is '{wanted}', which has no address of VIP {vip}'s family: give it one."


# The interface of VRRP is in no subnet that a VIP has: networks of benchmarks (RFC 2544 and RFC 5180).
ELSEWHERE = {4: "198.18.0.0/15", 6: "2001:2::/48"}


def placeholder_host(
    vips: List[Any], address: str, rank: int, interface: str, vrrp_interface: str = "", *, taken: Sequence[str] = ()
) -> Dict[str, Any]:
    """Return assumed facts of a member that was not read: an address in the subnet of each VIP.

    :param address: by which Ansible reaches the member; often a name
    :param rank: its place among the members, from which an address is made up where it has none of a VIP's family
    :param vrrp_interface: another one that has an address of each VIP's family, or nothing
    :param taken: by which Ansible reaches all members, which none of them has made up
    """
    targets = [parsed for parsed in map(_as_vip, vips) if parsed is not None]  # the plan refuses the others
    occupied = {*targets, *filter(None, map(_as_address, taken))}
    own, found = _as_address(address), []
    if own is not None and (own in targets or own.is_loopback()):  # a VIP is refused, a forwarded port says nothing
        own = None
    for vip in targets:
        if own is not None and own.version == vip.version:
            near = own
        else:
            first = next(one for one in targets if one.version == vip.version)  # one address beside all VIPs
            beside = (netaddr.IPAddress(int(first) ^ number, vip.version) for number in itertools.count(1))
            near = next(itertools.islice((one for one in beside if one not in occupied), rank, None))
        prefix = (32 if vip.version == 4 else 128) - (int(near) ^ int(vip)).bit_length()
        found.append(
            {"interface": interface or "eth0", "address": str(near), "prefix": prefix, "mac": "", "assumed": True}
        )
    for version in sorted({vip.version for vip in targets}) if vrrp_interface else ():
        own_there, length = str(netaddr.IPNetwork(ELSEWHERE[version])[rank + 1]), 32 if version == 4 else 128
        info = {"interface": vrrp_interface, "address": own_there, "prefix": length, "mac": "", "assumed": True}
        found.append(info)
    return {"addresses": found, "assumed": True}


def _as_vip(item: Any) -> Optional[Any]:
    return _as_address(str(item.get("address") if isinstance(item, dict) else item).partition("/")[0])


def _as_address(text: str) -> Optional[Any]:
    try:
        return netaddr.IPAddress(text)
    except (netaddr.AddrFormatError, TypeError, ValueError):
        return None
