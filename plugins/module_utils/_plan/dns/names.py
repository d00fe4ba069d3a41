# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names and addresses that a user writes for DNS, and what is wrong with them. Pure."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ..._agent.config import schema
from ..._agent.config.schema import Faults, Field, anything, no_addresses, read, shown

MAX_NAME_LENGTH = 253  # RFC 1035, 2.3.4: 255 octets on the wire, with a length before each label and before the root
LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")  # RFC 952; RFC 1123, 2.1 lets it begin with a digit
WANTED = "an IPv4 or IPv6 address is required"
ELSEWHERE = "others cannot reach a host at that address, give one which they can."
VIP_ADDRESS = {"address": Field(anything, required=True)}  # for ``vip_faults`` to judge

Interface = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]


def cluster_name(given: Any, faults: Faults) -> str:
    if isinstance(given, str) and "." in given:
        faults.append(f"ipi_cluster_name is {given!r}, with a dot: give the bare name, without its domain.")
        return ""
    return host_name(given, "ipi_cluster_name", "lab", faults)


def domain(given: Any, place: str, faults: Faults) -> str:
    name = host_name(given, place, "example.com", faults)
    if name.rpartition(".")[2].isdigit():  # RFC 1123, 2.1: this distinguishes an address from a name
        faults.append(f"{place} is {given!r}, which ends in a number as only an address does: give a domain's name.")
        return ""
    return name


def host_name(given: Any, place: str, example: str, faults: Faults) -> str:
    """Return a host's or domain's name in lower case, without its final dot; '' if it is none."""
    wrong = _wrong_name(given, example)
    if wrong:
        faults.append(f"{place} is {wrong}")
        return ""
    return _undotted(given).lower()


def _wrong_name(given: Any, example: str) -> str:
    if given is None or given == "":
        return f"empty: give a name, for instance {example}."
    it = shown(given)
    if not isinstance(given, str):
        return f"{it}, which is not text: put it in quotes."
    if "*" in given:  # RFC 1034, 4.3.3: only a whole first label makes a wildcard
        return f"{it}: a * may only be a record's first part, and is put there without being asked; leave it out."
    for label in _undotted(given).split("."):
        if not LABEL.fullmatch(label):
            return f"{it}: its part {shown(label)} has to be 1 to 63 letters, digits and inner hyphens; correct it."
    return ""


def _undotted(name: str) -> str:
    """Return a name without the final dot that marks it as fully qualified."""
    return name[:-1] if name.endswith(".") else name


def vips(given: Any, place: str, faults: Faults) -> Dict[str, Tuple[str, Any]]:
    """Read VIPs as the roles take them: each an address, with or without a prefix length, or a mapping with one.

    :return: by address its place, for the sentences, and what the user wrote there
    """
    if not isinstance(given, list) or not given:
        faults.append(f"{place} is {shown(given)}: {no_addresses(given)}")
        return {}
    found: Dict[str, Tuple[str, Any]] = {}
    for at, item in enumerate(given):
        where = f"{place}[{at}]"
        written = item.get("address") if isinstance(item, dict) else item
        wrong: Faults = []
        read(VIP_ADDRESS, {"address": written}, where, wrong)
        wrong = wrong or vip_faults(written, where)
        faults += wrong
        vip = "" if wrong else address(written, where, WANTED, faults)
        if vip in found:
            faults.append(f"{where} is {vip} again: name each VIP once.")
        elif vip:
            found[vip] = where, item
    return found


def vip_faults(given: Any, place: str) -> Faults:
    """Refuse what cannot be a VIP at all, in sentences."""
    try:
        interface = ipaddress.ip_interface(str(given).replace("%", " "))  # a zone may contain anything
    except ValueError:
        return [f"{place} is {shown(given)}: an IPv4 or IPv6 address, with or without a prefix length, is required."]
    ip = interface.ip
    if _is_of_no_host(ip):
        return [f"{place} is {given}: no host can be reached at that address, choose one of the hosts' subnet."]
    if "/" in str(given) and not str(given).rpartition("/")[2].isdigit():
        return [f"{place} is {shown(given)}: write the length of the prefix, as in {ip}/{interface.network.prefixlen}."]
    if ip in _edges(interface):
        return [f"{place} is {given}: this is the subnet's own network or broadcast address, choose another."]
    return []


def mapping(given: Any, place: str, faults: Faults) -> Dict[Any, Any]:
    if isinstance(given, dict):
        return given
    faults.append(
        f"{place} is {shown(given)}: a mapping of names to addresses, or a list of hosts of the inventory, is required."
    )
    return {}


def addresses(given: Any, place: str, wanted: str, faults: Faults) -> List[str]:
    """Read one address or a list of them, for a host that has IPv4 and IPv6."""
    if not isinstance(given, list):
        found = [address(given, place, wanted, faults)]
    else:
        found = [address(item, f"{place}[{at}]", wanted, faults) for at, item in enumerate(given)]
        if not found:
            faults.append(f"{place} is []: {wanted}.")
    return [each for each in found if each]


def address(given: Any, place: str, wanted: str, faults: Faults) -> str:
    try:
        interface = ipaddress.ip_interface(str(given))
    except ValueError:
        faults.append(f"{place} is {shown(given)}: {wanted}.")
        return ""
    if _unreachable(interface) or "%" in str(given):  # a record cannot name the link
        faults.append(f"{place} is {shown(given)}: {ELSEWHERE}")
        return ""
    return str(interface.ip)


def host_address(given: Any) -> Tuple[Any, Optional[str]]:
    """One address, without a prefix length, at which others reach a host."""
    found, wrong = schema.address(given)
    if not wrong and _unreachable(ipaddress.ip_interface(found)):
        return None, ELSEWHERE
    return found, wrong


def bootstrap_address(given: Any, faults: Faults) -> str:
    """Return the address of the bootstrap machine where it is no member; '' where it is no good."""
    found, wrong = host_address(given)
    if wrong:
        faults.append(f"ipi_bootstrap is {schema.shown(given)}: {wrong} Or name a host of ipi_masters.")
    return found or ""


def _unreachable(interface: Interface) -> bool:
    """Whether other hosts cannot reach a host at this address, or no host can have it."""
    return _is_of_no_host(interface.ip) or interface.ip.is_link_local or interface.ip in _edges(interface)


def _is_of_no_host(ip: Union[ipaddress.IPv4Address, ipaddress.IPv6Address]) -> bool:
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return True
    return ip.is_multicast or ip.is_loopback or ip.is_unspecified or str(ip) == "255.255.255.255"


def _edges(interface: Interface) -> Tuple[Any, ...]:
    """Return the addresses of an IPv4 subnet that are not its hosts'."""
    network = interface.network
    if network.version == 6 or network.num_addresses <= 2:
        return ()
    return network.network_address, network.broadcast_address


def too_long(names: Iterable[str], place: str) -> Faults:
    """Refuse names of which one is longer than DNS takes; what makes them long is at `place`."""
    longest = max(names, key=len)
    if len(longest) <= MAX_NAME_LENGTH:
        return []
    return [f"{longest} has {len(longest)} characters, and DNS takes {MAX_NAME_LENGTH}: shorten {place}."]
