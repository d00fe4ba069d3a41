# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The resolver of a node: what dnsmasq answers itself, whom it asks for the rest, and how the host learns of it. Pure.

A host has its names from one of three places, which decides where dnsmasq finds its upstreams and who is told of it:

- systemd-resolved: it asks dnsmasq for the cluster's domains alone, and keeps the list of upstreams;
- NetworkManager: it no longer writes /etc/resolv.conf, and keeps the list of upstreams;
- /etc/resolv.conf that nobody manages: it is kept, and its name servers become the upstreams.

The answers never name the host itself as its own upstream: dnsmasq leaves out what it listens on.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import Faults, read
from ..._agent.follow import hosts as node_names
from ..._agent.resolver import resolv_conf as texts
from ..._agent.resolver.keeper import FILE, NETWORK_MANAGER, RESOLVED, Settings
from ..._shared import mark, paths, resolver_records
from ..._shared.resolver_records import Answering
from ..model.resolver import SETTINGS, unheard
from . import corefile, layouts, resolv_conf, resolved, searched
from .records import Hosts, Record, addresses
from .resolv_conf import ResolvConf

FOLDER = "/etc/onprem-lb-resolver"
CONFIG, NAMES = resolver_records.PATHS
HOSTS, LOCAL = f"{FOLDER}/hosts", f"{FOLDER}/local"  # of the nodes
ASKED = f"{FOLDER}/upstreams"  # those of UPSTREAMS, which the keeper writes here
UNIT = paths.RESOLVER
# Where each keeps the name servers that it was given. The file of the third is the one that is kept.
DROP_IN = "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf"  # the last one, which counts
UPSTREAMS = {
    RESOLVED: "/run/systemd/resolve/resolv.conf",
    NETWORK_MANAGER: "/run/NetworkManager/resolv.conf",
    FILE: texts.KEPT,
}
MARK = f"{mark.MARK}.resolver."
CACHE = 1000  # names
PORT = 53
LOOPBACK = ("127.0.0.1", "::1", texts.STUB)


class Resolver(NamedTuple):
    """What one host gets. With faults all of the rest is empty."""

    faults: Faults
    warnings: List[str] = []
    told: str = ""  # RESOLVED, NETWORK_MANAGER or FILE
    address: str = ""  # at which the host asks
    domains: List[str] = []
    config: str = ""  # of dnsmasq, which reads it at a start
    names: str = ""  # the hosts file with the layout's own names, which it reads again
    hosts: str = ""
    local: str = ""
    corefile: str = ""
    resolved: str = ""  # the drop-in of systemd-resolved
    networkmanager: str = ""  # the drop-in of NetworkManager
    keeper: str = ""  # the configuration of the service that keeps the host asking
    upstreams: List[str] = []  # the host's own name servers
    asked: str = ""  # the file with whom dnsmasq asks
    resolv_conf: str = ""
    supersedes: bool = False  # whether the file that is kept from before is of no use any more
    in_force: bool = True  # whether systemd-resolved asks already
    answers: List[Dict[str, Any]] = []  # ``{name, addresses}``: what dnsmasq must answer
    on_the_way: Dict[str, Any] = {}  # as `resolver_records.OnTheWay`; nothing where no VIP is replaced


def plan(settings: Mapping[str, Any], host: Mapping[str, Any]) -> Resolver:
    """Return what a host gets.

    :param settings: the role's variables, without their prefix, those of SETTINGS
    :param host: as `component_info` returns it
    """
    faults: Faults = []
    given = read(SETTINGS, dict(settings), "resolver", faults)
    layout = given["layout"]
    if not layout and not faults:
        faults.append("resolver_layout is empty: describe the cluster or the pair whose names are answered.")
    names = names_of(layout, given["ttl"], faults) if not faults else Names()
    here = ResolvConf(**host["resolv_conf"])
    own = _own_address(given, host, faults)
    faults += _port_taken(given["listen"], host["port_53"])
    if faults:
        return Resolver([fault.replace("resolver.", "resolver_", 1) for fault in faults])
    return _found(names, given, own, here, host)


def _found(names: Names, given: Mapping[str, Any], own: str, here: ResolvConf, host: Mapping[str, Any]) -> Resolver:
    """Return what a host gets of which nothing is wrong."""
    told = _told(here, host)
    source = here.original if told == FILE else host["upstreams"].get(told, "")
    mine = {*host["addresses"], *given["listen"], own, *LOOPBACK, *names.addresses}
    others = [each for each in texts.nameservers(source) if each not in mine]
    named = resolved.servers(host["resolved_config"], DROP_IN) if told == RESOLVED else []
    named = [each for each in named if each not in mine]
    servers = [f"server={each}" for each in named]
    keeper = Settings(told, own, UPSTREAMS[told], sorted(mine), named, ASKED)
    config = _config(names, given, [*servers, f"resolv-file={ASKED}"])
    then = Answering(config, resolver_records.hosts_file(MARK, names.named))
    way = resolver_records.on_the_way(Answering(**host.get("answering", {})), then)
    return Resolver(
        faults=[],
        warnings=[
            *searched.warnings(names.hosts, source),
            *_warnings(told, source, [] if others or servers else names.domains),
        ],
        told=told,
        address=own,
        domains=names.domains,
        config=config,
        names=then.names,
        hosts=node_names.hosts(names.nodes, names.domains[0], names.reserved),
        local=node_names.local(names.nodes, names.domains[0], names.reserved),
        corefile=f"{MARK}\n{corefile.render(names.fixed, HOSTS, UPSTREAMS[told], given['ttl'])}",
        resolved=resolved.drop_in(MARK, own, names.domains) if told == RESOLVED else "",
        networkmanager=f"{MARK}\n[main]\nrc-manager=unmanaged\n" if told == NETWORK_MANAGER else "",
        keeper=json.dumps(keeper._asdict(), indent=2) + "\n",
        upstreams=list(dict.fromkeys([*others, *(each for each in named if "#" not in each)])),
        asked=texts.upstreams([each for each in others if each not in named]) if others or named else f"{MARK}\n",
        resolv_conf="" if told == RESOLVED else texts.render(source, own, others),
        supersedes=here.is_foreign,
        in_force=told != RESOLVED or own in texts.nameservers(host["upstreams"].get(RESOLVED, "")),
        answers=resolver_records.questions(names.hosts),
        on_the_way={**way._asdict(), "server": way.server or own} if way.answers else {},
    )


class Names(NamedTuple):
    """What is answered without asking anybody."""

    domains: List[str] = []  # the cluster's or the pair's, and those of router shards outside it
    fixed: List[Record] = []
    dnsmasq: str = ""  # whose names these are, and the wildcards, as its configuration
    nodes: Hosts = {}

    @property
    def hosts(self) -> Hosts:
        return addresses(self.fixed)

    @property
    def named(self) -> Hosts:
        """The names with their addresses, without the wildcards, which no hosts file can have."""
        return {name: ips for name, ips in self.hosts.items() if not name.startswith("*.")}

    @property
    def addresses(self) -> List[str]:
        """The VIPs, at which one of the layout's own resolvers answers, whoever holds them."""
        return [address for found in self.hosts.values() for address in found]

    @property
    def reserved(self) -> List[str]:
        """What the domain's own records begin with, and no node may be called."""
        zone = f".{self.domains[0]}"
        labels = {name[: -len(zone)].split(".")[-1] for name in self.hosts if name.endswith(zone)}
        return sorted({*node_names.RESERVED, *labels} - {"*"})


def names_of(layout: Dict[str, Any], ttl: int, faults: Faults) -> Names:
    """Return the names of a layout. Those of its nodes are apart, because they change without a run."""
    whole = layouts.describe({**layout, "ttl": ttl})
    faults += whole["faults"]
    if whole["faults"]:
        return Names()
    apart = layouts.describe({**layout, "nodes": None, "ttl": ttl})
    fixed = [Record(**each) for each in apart["records"]]
    every = addresses(Record(**each) for each in whole["records"])
    zone = layouts.zone_of(layout)
    others = [name[2:] for name in addresses(fixed) if name.startswith("*.") and not name.endswith(f".{zone}")]
    nodes = {name: ips for name, ips in every.items() if name not in addresses(fixed)}
    lines = [line for line in apart["dnsmasq"].splitlines(keepends=True) if line.startswith(("local=", "address="))]
    return Names([zone, *others], fixed, "".join(lines), nodes)


def _config(names: Names, given: Mapping[str, Any], upstreams: Sequence[str]) -> str:
    """Return the configuration of dnsmasq. It reads no other file of this host, and gives no addresses out."""
    lines = [
        MARK,
        f"port={PORT}",
        # It listens on each address by itself, also on a VIP that comes, and leaves 127.0.0.53 to systemd-resolved.
        "bind-dynamic",
        *([f"listen-address={','.join(given['listen'])}"] if given["listen"] else ["local-service"]),
        *upstreams,
        # As a host's own programs ask: what the first one does not know is unknown, and only its silence asks the next.
        "strict-order",
        "proxy-dnssec",
        "domain-needed",
        "dns-loop-detect",
        f"cache-size={CACHE}",
        "no-hosts",
        f"addn-hosts={NAMES}",
        f"addn-hosts={HOSTS}",
        f"servers-file={LOCAL}",
        f"local-ttl={given['ttl']}",
    ]
    return "\n".join([*lines, names.dnsmasq])


def _told(here: ResolvConf, host: Mapping[str, Any]) -> str:
    """Return who has to be told. What runs and does not manage /etc/resolv.conf has no say."""
    if host["resolved"] and resolv_conf.is_of_resolved(here):
        return RESOLVED
    if host["networkmanager"] and resolv_conf.is_of_network_manager(here):
        return NETWORK_MANAGER
    return FILE


def _warnings(told: str, source: str, alone: Sequence[str]) -> List[str]:
    """Return what the host will not have.

    :param alone: the domains, where these are all that it resolves
    """
    dropped = [] if told == RESOLVED else texts.carried(source).dropped
    return [*([_alone(alone)] if alone else []), *dropped]


def _alone(domains: Sequence[str]) -> str:
    return (
        f"This host has no name server besides itself, so it resolves {', '.join(domains)} and nothing else: give it a "
        "name server, which is then used without another run."
    )


def _own_address(given: Mapping[str, Any], host: Mapping[str, Any], faults: Faults) -> str:
    """Return the address at which the host asks; its pods have it from the host, so 127.0.0.1 would not do."""
    own = given["address"] or next(iter(given["listen"]), "") or host["source"] or next(iter(host["addresses"]), "")
    if not own:
        faults.append("This host has no address at which its pods reach it: give it one, or set resolver_address.")
    faults += unheard(own, given["listen"])
    return str(own)


def _port_taken(listen: Sequence[str], listeners: Sequence[Mapping[str, Any]]) -> Faults:
    """Refuse other name servers where this one will listen. A stub at another address of the loopback is none."""
    return [
        f"{_at(each['address'])} port {PORT} is taken by {each['program']}{_where(each)}: stop it, or name in "
        "resolver_listen the addresses at which the nodes are to be answered."
        for each in listeners
        if each["runs_in"] != UNIT and _clashes(each["address"], listen)
    ]


def _clashes(taken: str, listen: Sequence[str]) -> bool:
    ip = ipaddress.ip_address(taken)
    if ip.is_unspecified:
        return True
    return taken in listen if listen else not ip.is_loopback or taken in ("127.0.0.1", "::1")


def _at(taken: str) -> str:
    return "every address:" if ipaddress.ip_address(taken).is_unspecified else taken


def _where(listener: Mapping[str, Any]) -> str:
    return f" ({listener['runs_in']})" if listener["runs_in"] else ""
