# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The DNS records that a cluster or a pair needs, in the formats of three programs. Pure.

All names are fully qualified with a final dot (RFC 1035, 5.1): such a line means the same in every zone file, whatever
``$ORIGIN`` is there.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Union

from .._agent.config.schema import Faults, integer, unknown_keys

TTL = 300
LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")  # RFC 952; RFC 1123, 2.1 lets it begin with a digit
MAX_NAME_LENGTH = 253  # RFC 1035, 2.3.4: 255 octets on the wire, with a length before each label and before the root
KEYS = {
    "cluster": ("layout", "name", "domain", "api_vips", "ingress_vips", "nodes", "bootstrap", "ttl"),
    "pair": ("layout", "domain", "subdomain", "vips", "members", "ttl"),
}
RESERVED = ("api", "api-int", "apps", "bootstrap")
# A name with a CNAME has no other records, and a server ignores an A that is added to it (RFC 2136, 3.4.2.2).
SUPERSEDED = {"A": ("A", "AAAA", "CNAME"), "AAAA": ("A", "AAAA", "CNAME"), "PTR": ("PTR",)}
WANTED = "an IPv4 or IPv6 address is wanted"

Interface = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]
Hosts = Dict[str, List[str]]


class Record(NamedTuple):
    """One record, and the zone that it usually belongs to."""

    zone: str
    name: str
    type: str
    value: str
    ttl: int


class Part(NamedTuple):
    """The records of one layout."""

    title: str
    records: List[Record]
    variables: Dict[str, str]


NOTHING = Part("", [], {})


def describe(given: Any) -> Dict[str, Any]:
    """Return the records of one description, or of a list of them, in every form. Never raises.

    :param given: ``{layout: cluster, name, domain, api_vips, ingress_vips, nodes, bootstrap, ttl}`` or
        ``{layout: pair, domain, subdomain, vips, members, ttl}``; nodes and members are ``{name: address(es)}``
    :return: ``records``, the texts ``zone``, ``dnsmasq`` and ``nsupdate``, ``zones`` (the text of each zone by its
        name), the installer's ``variables``, and ``faults``. With faults all of the others are empty.
    """
    faults: Faults = []
    parts = [_part(one, faults) for one in (given if isinstance(given, list) else [given])]
    faults = faults or _named_twice(parts)
    parts = [] if faults else parts
    zones = _by_zone(record for part in parts for record in part.records)
    texts = {zone: _zone_text(zone, records) for zone, records in zones.items()}
    return {
        "records": [record._asdict() for records in zones.values() for record in records],
        "zones": texts,
        "zone": "".join(texts.values()),
        "dnsmasq": "".join(_dnsmasq_text(zone, records) for zone, records in zones.items()),
        "nsupdate": "".join(_nsupdate_text(zone, records) for zone, records in zones.items()),
        "variables": {key: value for part in parts for key, value in part.variables.items()},
        "faults": faults,
    }


def _part(given: Any, faults: Faults) -> Part:
    layout = given.get("layout") if isinstance(given, dict) else None
    if layout not in ("cluster", "pair"):
        faults.append(f"layout is {layout!r}: one of cluster, pair is wanted.")
        return NOTHING
    known = KEYS[layout]
    part_faults = unknown_keys(given, list(known), f"The description of the {layout}")
    given_ttl = TTL if given.get("ttl") is None else given["ttl"]
    ttl, wrong = integer(0, 2**31 - 1, "a number of seconds")(given_ttl)  # RFC 2181, 8
    if wrong:
        part_faults.append(f"dns_ttl is {given_ttl!r}: {wrong}")
    part = (_cluster if layout == "cluster" else _pair)({**dict.fromkeys(known), **given}, ttl or 0, part_faults)
    faults.extend(part_faults)
    return part


def _cluster(given: Dict[str, Any], ttl: int, faults: Faults) -> Part:
    """Return the records that an installer checks. The wildcard has no PTR, which would need one name."""
    name = _cluster_name(given["name"], faults)
    domain = _domain(given["domain"], "ipi_domain", faults)
    api = _vips(given["api_vips"], "ipi_api_vips", faults)
    ingress = _vips(given["ingress_vips"], "ipi_ingress_vips", faults)
    zone = f"{name}.{domain}" if name and domain else ""
    hosts = _nodes(given["nodes"], zone, faults)
    if given["bootstrap"]:
        hosts["bootstrap"] = _addresses(given["bootstrap"], "ipi_bootstrap", WANTED, faults)
    faults.extend(_shared({"api": api, "*.apps": ingress}, hosts))
    hosts = {"api": api, "api-int": api, **hosts}
    faults.extend(_too_long(zone, ["*.apps", *hosts], "ipi_domain"))
    if faults:
        return NOTHING
    records = _forward(zone, {**hosts, "*.apps": ingress}, ttl) + _reverse(zone, hosts, ttl)
    return Part(f"the cluster {name}", records, {})


def _pair(given: Dict[str, Any], ttl: int, faults: Faults) -> Part:
    """Return the records of a pair. It has no PTRs: each balancer's address already belongs to a host with a name."""
    domain = _domain(given["domain"], "dns_domain", faults)
    # An empty subdomain is a valid choice, None means the default.
    below = "apps" if given["subdomain"] is None else given["subdomain"]
    below = _name(below, "dns_subdomain", "apps", faults) if below != "" else ""
    vips = _vips(given["vips"], "pair_vips", faults)
    members = _mapping(given["members"], "pair_members", faults)
    hosts = {
        f"haproxy-{at}": _addresses(found, f"The address of {name}", f"{WANTED}, as its dns_address", faults)
        for at, (name, found) in enumerate(members.items())
    }
    faults.extend(_shared({"haproxy": vips}, hosts))
    wildcard = f"*.{below}" if below else "*"
    hosts = {"haproxy": vips, **hosts}
    faults.extend(_too_long(domain, [wildcard, *hosts], "dns_domain"))
    if faults:
        return NOTHING
    return Part("the pair", _forward(domain, {**hosts, wildcard: vips}, ttl), _openshift_3(domain, below))


def _openshift_3(domain: str, below: str) -> Dict[str, str]:
    """Return the balancers' variables in openshift-ansible's inventory, which has two names for the routes' domain."""
    routes = f"{below}.{domain}" if below else domain
    return {
        "openshift_master_cluster_hostname": f"haproxy.{domain}",
        "openshift_master_cluster_public_hostname": f"haproxy.{domain}",
        "openshift_master_default_subdomain": routes,
        "osm_default_subdomain": routes,
    }


def _cluster_name(given: Any, faults: Faults) -> str:
    if isinstance(given, str) and "." in given:
        faults.append(f"ipi_cluster_name is {given!r}, with a dot: give the bare name, without its domain.")
        return ""
    return _name(given, "ipi_cluster_name", "lab", faults)


def _domain(given: Any, place: str, faults: Faults) -> str:
    name = _name(given, place, "example.com", faults)
    if name.rpartition(".")[2].isdigit():  # RFC 1123, 2.1: this distinguishes an address from a name
        faults.append(f"{place} is {given!r}, which ends in a number as only an address does: give a domain's name.")
        return ""
    return name


def _name(given: Any, place: str, example: str, faults: Faults) -> str:
    """Return a host's or domain's name in lower case, without its final dot; '' if it is none."""
    wrong = _wrong_name(given, example)
    if wrong:
        faults.append(f"{place} is {wrong}")
        return ""
    return _undotted(given).lower()


def _wrong_name(given: Any, example: str) -> str:
    if given is None or given == "":
        return f"empty: give a name, for instance {example}."
    if not isinstance(given, str):
        return f"{given!r}, which is no text: put it in quotes."
    if "*" in given:  # RFC 1034, 4.3.3: only a whole first label makes a wildcard
        return f"{given!r}: a * may only be a record's first part, and is put there without being asked; leave it out."
    for label in _undotted(given).split("."):
        if not LABEL.fullmatch(label):
            return f"{given!r}: its part {label!r} has to be 1 to 63 letters, digits and inner hyphens; correct it."
    return ""


def _undotted(name: str) -> str:
    """Return a name without the final dot that marks it as fully qualified."""
    return name[:-1] if name.endswith(".") else name


def _vips(given: Any, place: str, faults: Faults) -> List[str]:
    """Read VIPs as the roles take them: each an address, with or without a prefix length, or a mapping with one."""
    if not isinstance(given, list) or not given:
        faults.append(f"{place} is {given!r}: a list of at least one address is wanted.")
        return []
    found: List[str] = []
    for at, item in enumerate(given):
        vip = _address(item.get("address") if isinstance(item, dict) else item, f"{place}[{at}]", WANTED, faults)
        if vip in found:
            faults.append(f"{place}[{at}] is {vip} again: name each VIP once.")
        elif vip:
            found.append(vip)
    return found


def _mapping(given: Any, place: str, faults: Faults) -> Dict[Any, Any]:
    if isinstance(given, dict):
        return given
    faults.append(f"{place} is {given!r}: a mapping of names to addresses is wanted.")
    return {}


def _nodes(given: Any, zone: str, faults: Faults) -> Hosts:
    """Return the nodes by their label in the cluster's zone; the user may give them with the zone."""
    found: Hosts = {}
    for name, addresses in _mapping({} if given is None else given, "dns_nodes", faults).items():
        label = _name(name, "A name in dns_nodes", "master-0", faults)
        # If the zone itself is wrong it has its own fault, and the nodes need none for it.
        label = label[: -len(zone) - 1] if zone and label.endswith(f".{zone}") else label
        if "." in label and zone:
            faults.append(f"dns_nodes has {name!r}, which is not directly below {zone}: give the part before it alone.")
        elif label in RESERVED:
            faults.append(f"dns_nodes has {name!r}, which means something else in a cluster: call the node otherwise.")
        elif label in found:
            faults.append(f"dns_nodes has {name!r}, and {label} already: give each node one name (case is all one).")
        elif label:
            found[label] = _addresses(addresses, f"dns_nodes.{name}", WANTED, faults)
    return found


def _addresses(given: Any, place: str, wanted: str, faults: Faults) -> List[str]:
    """Read one address or a list of them, for a host that has IPv4 and IPv6."""
    if not isinstance(given, list):
        found = [_address(given, place, wanted, faults)]
    else:
        found = [_address(item, f"{place}[{at}]", wanted, faults) for at, item in enumerate(given)]
        if not found:
            faults.append(f"{place} is []: {wanted}.")
    return [address for address in found if address]


def _address(given: Any, place: str, wanted: str, faults: Faults) -> str:
    try:
        interface = ipaddress.ip_interface(str(given))
    except ValueError:
        faults.append(f"{place} is {given!r}: {wanted}.")
        return ""
    if _unreachable(interface) or "%" in str(given):  # a record cannot name the link
        faults.append(f"{place} is {given}: others cannot reach a host at that address, give one which they can.")
        return ""
    return str(interface.ip)


def _unreachable(interface: Interface) -> bool:
    """Whether other hosts cannot reach a host at this address, or no host can have it."""
    ip, network = interface.ip, interface.network
    if ip.is_multicast or ip.is_loopback or ip.is_unspecified or ip.is_link_local:
        return True
    if isinstance(ip, ipaddress.IPv6Address):
        return ip.ipv4_mapped is not None
    edges = (network.network_address, network.broadcast_address) if network.num_addresses > 2 else ()
    return ip in edges or ip == ipaddress.IPv4Address("255.255.255.255")


def _shared(floating: Hosts, hosts: Hosts) -> Faults:
    """Refuse a host's address that another also has. Two VIPs may be the same: then one balancer serves both."""
    owners = {address: name for name, addresses in floating.items() for address in addresses}
    faults = []
    for name, addresses in hosts.items():
        for address in addresses:
            if owners.setdefault(address, name) != name:
                faults.append(f"{name} has {address}, which {owners[address]} has too: give each its own address.")
    return faults


def _too_long(zone: str, names: Iterable[str], place: str) -> Faults:
    longest = max((f"{name}.{zone}" for name in names), key=len)
    if len(longest) <= MAX_NAME_LENGTH:
        return []
    return [f"{longest} has {len(longest)} characters, and DNS takes {MAX_NAME_LENGTH}: shorten {place}."]


def _named_twice(parts: List[Part]) -> Faults:
    """Refuse a name in two layouts: the nsupdate of the later one would delete the records of the earlier one."""
    faults = []
    for one, other in itertools.combinations(parts, 2):
        names = {record.name for record in one.records if record.type != "PTR"}
        both = sorted(names & {record.name for record in other.records})
        if both:
            faults.append(
                f"{both[0]} would belong to {one.title} and to {other.title}: give one of them another domain."
            )
    return faults


def _forward(zone: str, hosts: Hosts, ttl: int) -> List[Record]:
    return [
        Record(f"{zone}.", f"{name}.{zone}.", "AAAA" if ":" in address else "A", address, ttl)
        for name, addresses in hosts.items()
        for address in addresses
    ]


def _reverse(zone: str, hosts: Hosts, ttl: int) -> List[Record]:
    """Return the PTRs, in the usual reverse zones: of a /24 (RFC 1035, 3.5) and of a /64 (RFC 3596, 2.5)."""
    found = []
    for name, addresses in hosts.items():
        for address in addresses:
            pointer = ipaddress.ip_address(address).reverse_pointer + "."
            cut = pointer.split(".", 16 if ":" in address else 1)[-1]
            found.append(Record(cut, pointer, "PTR", f"{name}.{zone}.", ttl))
    return found


def _by_zone(records: Iterable[Record]) -> Dict[str, List[Record]]:
    """Sort the records, so that the text does not depend on the order of the input."""
    ordered = sorted(set(records), key=_order)
    return {zone: list(group) for zone, group in itertools.groupby(ordered, key=lambda record: record.zone)}


def _order(record: Record) -> Tuple[Any, ...]:
    """Return the sort key: forward zones before reverse ones, then the canonical order of RFC 4034, 6.1."""
    address = None if record.type == "PTR" else int(ipaddress.ip_address(record.value))
    zone = (record.zone.endswith(".arpa."), _canonical(record.zone))
    return (*zone, _canonical(record.name), address or 0, _canonical(record.value))


def _canonical(name: str) -> List[str]:
    return name.split(".")[::-1]


def _by_name(records: List[Record]) -> Iterator[Tuple[str, List[Record]]]:
    for name, group in itertools.groupby(records, key=lambda record: record.name):
        yield name, list(group)


def _zone_text(zone: str, records: List[Record]) -> str:
    """Return the lines to include in a zone file. SOA and NS are left to the zone's owner."""
    width = max(len(record.name) for record in records)
    lines = [f"{name:<{width}} {ttl} IN {kind:<4} {value}" for _zone, name, kind, value, ttl in records]
    return "\n".join([f"; {zone}", *lines, ""])


def _dnsmasq_text(zone: str, records: List[Record]) -> str:
    return "\n".join(
        [f"# {zone[:-1]}", *(line for name, same in _by_name(records) for line in _dnsmasq(name, same)), ""]
    )


def _dnsmasq(name: str, records: List[Record]) -> Iterator[str]:
    """Yield a name's lines. ``address=`` is dnsmasq's only wildcard; it includes the bare domain, and has no TTL."""
    if records[0].type == "PTR":
        yield from (f"ptr-record={name[:-1]},{record.value[:-1]}" for record in records)
        return
    wildcard = name.startswith("*.")
    bare = name[2:-1] if wildcard else name[:-1]
    # Since 2.86 dnsmasq forwards a query for the family of which a name has no address, to a server that may answer
    # that there is no such name.
    yield f"local=/{bare}/"
    for record in records:
        yield f"address=/{bare}/{record.value}" if wildcard else f"host-record={bare},{record.value},{record.ttl}"


def _nsupdate_text(zone: str, records: List[Record]) -> str:
    """Return one update, which a server applies as a whole or not at all (RFC 2136, 3.4): no name is ever missing.

    It has no ``zone`` line, because nsupdate asks the server for the zone; and no empty line, which would mean
    ``send``.
    """
    lines = [f"; {zone}"]
    for name, same in _by_name(records):
        lines += [f"update delete {name} {kind}" for kind in SUPERSEDED[same[0].type]]
    lines += [f"update add {name} {ttl} {kind} {value}" for _zone, name, kind, value, ttl in records]
    return "\n".join([*lines, "send", ""])
