# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The DNS records that a cluster or a pair needs, in the formats of three programs. Pure."""

from __future__ import annotations

import collections
import itertools
import re
from typing import Any, Collection, Dict, List, NamedTuple

from ..._agent.config.schema import Faults, boolean, integer, shown, unknown_keys
from ..model import destinations
from . import corefile, names, records, texts
from .names import WANTED
from .records import Hosts, Record

TTL = 300
OF_A_CLUSTER = ("nodes", "etcd")
KEYS = {
    "cluster": ("layout", "name", "domain", "api_vips", "ingress_vips", *OF_A_CLUSTER, "bootstrap", "hosts", "ttl"),
    "pair": ("layout", "domain", "subdomain", "vips", "members", "api", *OF_A_CLUSTER, "hosts", "ttl"),
}
API = ("api", "api-int")
RESERVED = (*API, "apps")
NUMBERED = re.compile(r"haproxy-[0-9]{1,9}")
ETCD, ETCD_PORT = "_etcd-server-ssl._tcp", 2380


class Part(NamedTuple):
    """The records of one layout."""

    title: str
    records: List[Record]
    variables: Dict[str, str]


NOTHING = Part("", [], {})


def describe(given: Any) -> Dict[str, Any]:
    """Return the records of one description, or of a list of them, in every form. Never raises.

    :param given: ``{layout: cluster, name, domain, api_vips, ingress_vips, nodes, etcd, bootstrap, hosts, ttl}`` or
        ``{layout: pair, domain, subdomain, vips, members, api, nodes, etcd, hosts, ttl}``; nodes, members and hosts are
        ``{name: address(es)}``, etcd is a list of addresses. Names of hosts may stand for these mappings and addresses.
    :return: ``records``, the texts ``zone``, ``dnsmasq``, ``nsupdate`` and ``corefile``, ``zones`` (the text of each
        zone by its name), the installer's ``variables``, and ``faults``. With faults all of the others are empty.
    """
    faults: Faults = []
    parts = [_part(one, faults) for one in (given if isinstance(given, list) else [given])]
    faults = faults or _named_twice(parts)
    parts = [] if faults else parts
    zones = records.by_zone(record for part in parts for record in part.records)
    zone_files = {zone: texts.zone_file(zone, found) for zone, found in zones.items()}
    return {
        "records": [record._asdict() for found in zones.values() for record in found],
        "zones": zone_files,
        "zone": "".join(zone_files.values()),
        "dnsmasq": "".join(texts.dnsmasq(zone, found) for zone, found in zones.items()),
        "nsupdate": "".join(texts.nsupdate(zone, found) for zone, found in zones.items()),
        "corefile": corefile.render(record for found in zones.values() for record in found) if zones else "",
        "variables": {key: value for part in parts for key, value in part.variables.items()},
        "faults": faults,
    }


def zone_of(given: Dict[str, Any]) -> str:
    """Return the domain of a layout of which `describe` has found no fault."""
    whole = [given["name"], given["domain"]] if given["layout"] == "cluster" else [given["domain"]]
    return ".".join(names.host_name(each, "", "", []) for each in whole)


def _part(given: Any, faults: Faults) -> Part:
    layout = given.get("layout") if isinstance(given, dict) else None
    if layout not in ("cluster", "pair"):
        faults.append(f"layout is {shown(layout)}: one of cluster, pair is required.")
        return NOTHING
    known = KEYS[layout]
    part_faults = unknown_keys(given, list(known), f"The description of the {layout}")
    given_ttl = TTL if given.get("ttl") is None else given["ttl"]
    ttl, wrong = integer(0, 2**31 - 1, "a number of seconds")(given_ttl)  # RFC 2181, 8
    if wrong:
        part_faults.append(f"dns_ttl is {shown(given_ttl)}: {wrong}")
    part = (_cluster if layout == "cluster" else _pair)(
        {**dict.fromkeys(known), **given, **_of_hosts(given)}, ttl or 0, part_faults
    )
    faults.extend(part_faults)
    return part


def _of_hosts(given: Dict[str, Any]) -> Dict[str, Any]:
    """Return the keys in which names stand for hosts, with the hosts' addresses."""
    hosts = names.mapping(given.get("hosts") or {}, "hosts", [])
    found: Dict[str, Any] = {}
    for key in ("members", "nodes"):
        named = given.get(key)
        if isinstance(named, list) and all(isinstance(name, str) and name in hosts for name in named):
            found[key] = {name: hosts[name] for name in named}
    if isinstance(given.get("etcd"), list):
        found["etcd"] = [hosts.get(item, item) if isinstance(item, str) else item for item in given["etcd"]]
    bootstrap = given.get("bootstrap")
    if isinstance(bootstrap, str) and bootstrap in hosts:
        found["bootstrap"] = hosts[bootstrap]  # and no other name
        nodes = found.get("nodes", given.get("nodes"))
        if isinstance(nodes, dict):
            found["nodes"] = {name: addresses for name, addresses in nodes.items() if name != bootstrap}
    return found


def _cluster(given: Dict[str, Any], ttl: int, faults: Faults) -> Part:
    """Return the records that an installer checks. The wildcards have no PTR, which would need one name."""
    name = names.cluster_name(given["name"], faults)
    domain = names.domain(given["domain"], "ipi_domain", faults)
    api = list(names.vips(given["api_vips"], "ipi_api_vips", faults))
    zone = f"{name}.{domain}" if name and domain else ""
    routes = _routes(given["ingress_vips"], zone, faults)
    etcd = _etcd(given["etcd"], faults)
    hosts = _nodes(given["nodes"], zone, (*RESERVED, "bootstrap", *etcd), faults)
    hosts.update(_bootstrap(given["bootstrap"], [*api, *itertools.chain(*routes.values())], hosts, faults))
    floating = {"api": api, **{f"*.{below}": vips for below, vips in routes.items()}}
    faults += [*_shared(floating, hosts), *_shared(floating, etcd)]
    hosts = {**dict.fromkeys(API, api), **hosts}
    faults += names.too_long([f"{host}.{zone}" for host in ("*.apps", *hosts)], "ipi_domain")
    if faults:
        return NOTHING
    found = records.forward(zone, {**hosts, **etcd}, ttl) + records.reverse(zone, hosts, ttl)
    found += records.service(zone, ETCD, ETCD_PORT, etcd, ttl)
    for below, vips in routes.items():
        at = next((one for one in (zone, domain) if below.endswith(f".{one}")), below)
        found += records.forward(at, {f"*.{below}"[: -len(at) - 1]: vips}, ttl)
    return Part(f"the cluster {name}", found, {})


def _bootstrap(given: Any, vips: List[str], nodes: Hosts, faults: Faults) -> Hosts:
    """Return the name of the bootstrap machine, whose address is refused in the words of the cluster's own plan."""
    owned = {address: f"{name}'s own address" for name, addresses in nodes.items() for address in addresses}
    owned.update(dict.fromkeys(vips, "a VIP of the cluster"))
    found = []
    for one in given if isinstance(given, list) else [given] if given else []:
        refused: Faults = []
        address = names.bootstrap_address(one, refused)
        refused += destinations.faults([destinations.of_bootstrap(address)], owned)
        faults += refused
        found += [] if refused else [address]
    return {"bootstrap": found} if found else {}


def _routes(given: Any, zone: str, faults: Faults) -> Hosts:
    """Return the ingress VIPs by the domain of their routes. That of a router shard is its own, or below its name."""
    usual, found = f"apps.{zone}", {}  # type: str, Hosts
    for vip, (place, item) in names.vips(given, "ipi_ingress_vips", faults).items():
        item = item if isinstance(item, dict) else {}
        domain = usual
        if item.get("domain"):
            domain = names.domain(item["domain"], f"{place}.domain", faults)
            faults += names.too_long([f"*.{domain}"], f"{place}.domain")
        elif item.get("name"):
            domain = f"{names.host_name(item['name'], f'{place}.name', 'shard1', faults)}.{zone}"
        if domain == usual and (item.get("domain") or item.get("name")):
            faults.append(
                f"{place} would be among the addresses of *.{usual}, and its routers do not have those routes: "
                "give it a domain of its own, or leave out its name and domain."
            )
        found.setdefault(domain, []).append(vip)
    if found and usual not in found:
        faults.append(f"ipi_ingress_vips has router shards only: leave one VIP without a name, for *.{usual}.")
    return found


def _pair(given: Dict[str, Any], ttl: int, faults: Faults) -> Part:
    """Return the records of a pair. Its members have no PTRs: their addresses belong to hosts with names."""
    domain = names.domain(given["domain"], "dns_domain", faults)
    # An empty subdomain is a valid choice, None means the default.
    below = "apps" if given["subdomain"] is None else given["subdomain"]
    below = names.host_name(below, "dns_subdomain", "apps", faults) if below != "" else ""
    vips = list(names.vips(given["vips"], "pair_vips", faults))
    members = names.mapping(given["members"], "pair_members", faults)
    called = _called([*members])
    hosts = {
        called[name]: names.addresses(found, f"The address of {name}", f"{WANTED}, as its dns_address", faults)
        for name, found in members.items()
    }
    serves_api, wrong = boolean(given["api"] or False)
    if wrong:
        faults.append(f"dns_api is {shown(given['api'])}: {wrong}")
    etcd = _etcd(given["etcd"] if serves_api else None, faults)
    taken = (*RESERVED, "haproxy", *hosts, *etcd)
    nodes = _nodes(given["nodes"] if serves_api else None, domain, taken, faults)
    faults += [*_shared({"haproxy": vips}, {**hosts, **nodes}), *_shared({"haproxy": vips}, etcd)]
    with_ptr = {**dict.fromkeys(API if serves_api else (), vips), **nodes}
    wildcard = f"*.{below}" if below else "*"
    hosts = {"haproxy": vips, **hosts, **with_ptr, **etcd, wildcard: vips}
    faults += names.too_long([f"{host}.{domain}" for host in hosts], "dns_domain")
    if faults:
        return NOTHING
    found = records.forward(domain, hosts, ttl) + records.reverse(domain, with_ptr, ttl)
    found += records.service(domain, ETCD, ETCD_PORT, etcd, ttl)
    return Part("the pair", found, {} if serves_api else _openshift_3(domain, below))


def _called(members: List[Any]) -> Dict[Any, str]:
    """Return the names of a pair's members: their own ones that are haproxy-N, and the free ones of these in order."""
    own = {name: str(name).partition(".")[0].lower() for name in members}
    once = {
        each for each, count in collections.Counter(own.values()).items() if count == 1 and NUMBERED.fullmatch(each)
    }
    free = (each for each in map("haproxy-{}".format, itertools.count()) if each not in once)
    return {name: each if each in once else next(free) for name, each in own.items()}


def _openshift_3(domain: str, below: str) -> Dict[str, str]:
    """Return the balancers' variables in openshift-ansible's inventory, which has two names for the routes' domain."""
    routes = f"{below}.{domain}" if below else domain
    return {
        "openshift_master_cluster_hostname": f"haproxy.{domain}",
        "openshift_master_cluster_public_hostname": f"haproxy.{domain}",
        "openshift_master_default_subdomain": routes,
        "osm_default_subdomain": routes,
    }


def _nodes(given: Any, zone: str, reserved: Collection[str], faults: Faults) -> Hosts:
    """Return the nodes by their label in the cluster's zone; the user may give them with the zone."""
    found: Hosts = {}
    for name, addresses in names.mapping({} if given is None else given, "dns_nodes", faults).items():
        label = names.host_name(name, "A name in dns_nodes", "master-0", faults)
        # If the zone itself is wrong it has its own fault, and the nodes need none for it.
        label = label[: -len(zone) - 1] if zone and label.endswith(f".{zone}") else label
        if "." in label and zone:
            faults.append(f"dns_nodes has {name!r}, which is not directly below {zone}: give the part before it alone.")
        elif label in reserved:
            faults.append(f"dns_nodes has {name!r}, which means something else in a cluster: call the node otherwise.")
        elif label in found:
            faults.append(f"dns_nodes has {name!r}, and {label} already: give each node one name (case is all one).")
        elif label:
            found[label] = names.addresses(addresses, f"dns_nodes.{name}", WANTED, faults)
    return found


def _etcd(given: Any, faults: Faults) -> Hosts:
    """Return the names that etcd's members have in OpenShift up to 4.3, which finds them by an SRV."""
    if not given:
        return {}
    if not isinstance(given, list):
        faults.append(f"dns_etcd is {shown(given)}: a list of the masters' addresses is required.")
        return {}
    return {
        f"etcd-{at}": names.addresses(address, f"dns_etcd[{at}]", WANTED, faults) for at, address in enumerate(given)
    }


def _shared(floating: Hosts, hosts: Hosts) -> Faults:
    """Refuse a host's address that another also has. Two VIPs may be the same: then one balancer serves both."""
    owners = {address: name for name, addresses in floating.items() for address in addresses}
    faults = []
    for name, addresses in hosts.items():
        for address in addresses:
            if owners.setdefault(address, name) != name:
                faults.append(f"{name} has {address}, which {owners[address]} has too: give each its own address.")
    return faults


def _named_twice(parts: List[Part]) -> Faults:
    """Refuse a name in two layouts: the nsupdate of the later one would delete the records of the earlier one."""
    faults = []
    for one, other in itertools.combinations(parts, 2):
        ours = {record.name for record in one.records if record.type != "PTR"}
        both = sorted(ours & {record.name for record in other.records})
        if both:
            faults.append(
                f"{both[0]} would belong to {one.title} and to {other.title}: give one of them another domain."
            )
    return faults
