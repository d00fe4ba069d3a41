# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A balancer that follows its cluster's nodes: what ``agent follow`` is given, and which servers a run keeps. Pure.

The cluster says which servers there are, so a run leaves those that `follow` has written. The inventory's servers are
those of the first run, and their options are those of the nodes.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, Field, boolean, list_of, number, text
from ..._agent.follow import changes, config, selector
from ..._agent.follow import settings as follow_settings
from ..._shared import engines, paths
from ..model import fallback, kinds, pace, values
from ..model.kubeconfig import SECRETS, Credentials
from ..model.services import countable

DAY = 86400  # seconds
FOLDER = "/etc/onprem-lb-follow"
CONFIG = f"{FOLDER}/follow.json"
SUFFIXES = {"ca": "crt", "certificate": "crt", "key": "key", "token": ""}
RELOAD = ["/usr/bin/systemctl", "reload", "haproxy.service"]
PRIVATE = "0600"  # a mode
BORDER = "-----"  # of PEM
UNIT = paths.FOLLOWING

SETTINGS = {
    "follow": Field(boolean, False),
    "follow_kubeconfig": Field(values.optional(values.plain_path), ""),
    "follow_label": Field(values.optional(config.NODES["label"].check), ""),  # that of the kind of cluster
    "follow_not_ready_for": Field(number(0, DAY, " seconds"), 60),
    "follow_drain_for": Field(number(0, DAY, " seconds"), 300),
}


def _services(value: Any) -> values.Checked:
    """The names of services, or a mapping of them to the labels of their nodes."""
    if not isinstance(value, dict):
        return list_of(text)(value)
    for name, label in value.items():
        if not isinstance(name, str) or SETTINGS["follow_label"].check(label)[1]:
            return None, f"a label selector is required for {name}, such as {kinds.CONTROL_PLANE}."
    return value, None


# The services of a pair may be anything, so a user may name those whose servers are nodes.
OF_PAIR = {"follow_services": Field(_services, [])}
Servers = Mapping[str, List[Dict[str, str]]]  # ``{service: [{name, address}]}``


class Follow(NamedTuple):
    """What a layout has read: whose nodes are followed, and by whom.

    :ivar services: the names of those whose servers are the nodes
    :ivar servers: the inventory's servers of the first of them
    :ivar api: the URLs of API servers that are asked before the kubeconfig's
    :ivar balancers: the addresses of members that are no nodes
    :ivar fallbacks: the names of HAProxy's second backends of services that may have one
    :ivar networks: the machine networks, the user's or those of the inventory's servers
    """

    services: List[str]
    servers: List[Dict[str, Any]]
    api: List[str]
    vips: List[str]
    balancers: List[str]
    settings: Dict[str, Any]
    fallbacks: Dict[str, str]
    networks: List[str]
    kind: kinds.Kind


def read(
    settings: Dict[str, Any],
    prefix: str,
    services: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    api: Sequence[str],
    vips: Sequence[str],
    faults: Faults,
    balancers: Iterable[str] = (),
    members: Iterable[Mapping[str, Any]] = (),
    kind: kinds.Kind = kinds.KUBERNETES,
) -> Optional[Follow]:
    """Return what is followed; None where nothing is, or where it cannot be.

    :param services: of the balancer, as `read_services` returns them
    :param names: those whose servers are nodes
    """
    if not settings["follow"]:
        return None
    known = {service["name"]: service for service in services}
    wrong = _faults(settings, prefix, known, names)
    faults += wrong
    if wrong or not names:
        return None
    servers = list(known[names[0]]["servers"])
    fallbacks = {name: fallback.name_of(name) for name in names if pace.may_have_second_backend(known[name])}
    others = sorted(set(balancers))
    addresses = [server["address"] for name in names for server in known[name]["servers"]]
    networks = settings["machine_networks"] or _networks(addresses, members)
    services_of = list(dict.fromkeys(names))
    return Follow(services_of, servers, list(api), list(vips), others, settings, fallbacks, networks, kind)


def _networks(addresses: Iterable[str], members: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return the networks of the inventory's servers: the members' subnets, else the addresses alone."""
    known = [
        ipaddress.ip_interface(f"{each['address']}/{each['prefix']}").network
        for member in members
        for each in member["host"]["addresses"]
        if each["interface"] != "lo"
    ]
    found = set()
    for address in map(ipaddress.ip_address, addresses):
        near = [network for network in known if address in network and network.num_addresses > 1]
        found.add(max(near, key=lambda network: network.prefixlen, default=ipaddress.ip_network(address)))
    families: List[List[Any]] = [[each for each in found if each.version == version] for version in (4, 6)]
    return [str(network) for family in families for network in ipaddress.collapse_addresses(family)]


def labels(settings: Mapping[str, Any], kind: kinds.Kind) -> Dict[str, str]:
    """Return the labels of the nodes that are followed, by the variable that has them."""
    services = settings.get("follow_services", [])
    own = services if isinstance(services, dict) else {}
    found = {f"follow_services ({name})": label for name, label in own.items() if label}
    return {"follow_label": settings["follow_label"] or kind.label, **found}


def warnings(settings: Mapping[str, Any], prefix: str, kind: kinds.Kind) -> List[str]:
    """Return a sentence for each label that nodes of the cluster do not have."""
    if not settings["follow"]:
        return []
    return [
        f"{prefix}_{place} is {label}, and {kind.lacks[each.key]}: follow {kind.label}."
        for place, label in labels(settings, kind).items()
        for each in selector.parse(label).requirements
        if each.key in kind.lacks and not each.negated
    ]


def _faults(settings: Dict[str, Any], prefix: str, known: Mapping[str, Any], names: Sequence[str]) -> Faults:
    faults = []
    if not settings["follow_kubeconfig"]:
        faults.append(
            f"{prefix}_follow_kubeconfig is empty, and {prefix}_follow asks the cluster's API: name a kubeconfig on "
            "the members whose user may list and watch nodes."
        )
    if settings["bootstrap"] and not settings["bootstrap_complete"]:
        faults.append(
            f"{prefix}_follow would take the bootstrap host off the balancer, which is not a node: set it once "
            f"{prefix}_bootstrap_complete is true."
        )
        return faults  # its servers are not like the others
    if not names:
        faults.append(f"{prefix}_follow_services is empty: name the services whose servers are the cluster's nodes.")
    for name in names:
        if name not in known:
            wrong = f"is no service of this layout: {', '.join(known) or 'none'}"
            faults.append(f"{prefix}_follow_services names {name}, which {wrong}.")
            continue
        other = known[name]["backend"]
        wrong = f"are those of {other}: name that" if other else _unlike_nodes(known[name]["servers"])
        faults += [f"{prefix}_follow_services names {name}, whose servers {wrong}."] if wrong else []
    return faults or _of_different_families(prefix, [known[name] for name in names])


def _of_different_families(prefix: str, services: Sequence[Mapping[str, Any]]) -> Faults:
    """Return why services cannot be followed together: a node is a server of each of them at one address."""
    families = [{_family(server["address"]) for server in service["servers"]} for service in services]
    return [
        f"{prefix}_follow_services names {services[0]['name']} and {service['name']}, whose servers have addresses of "
        "different families, and a node has one address: follow one of them."
        for service, of_family in zip(services, families)
        if of_family != families[0]
    ]


def _unlike_nodes(servers: List[Dict[str, Any]]) -> str:
    """Return why nodes cannot take the places of servers; '' if they can."""
    if not servers or any(values.is_name(str(each["address"])) for each in servers):
        return "need addresses: nodes replace them"
    options = [{key: value for key, value in each.items() if key not in ("name", "address")} for each in servers]
    if any(each != options[0] for each in options):
        return "differ in more than name and address, and nodes do not: give all of them the same"
    return ""


def followed_on(name: str, members: Iterable[Mapping[str, Any]]) -> Servers:
    """Return the servers that `follow` has written on a member; on a new one, those of another member.

    :param members: as in `planner`
    """
    found = {member["name"]: member["host"].get("followed", {}) for member in members}
    return found[name] or next(filter(None, found.values()), {})


def differing(about: Optional[Follow], members: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return a sentence for each member whose servers are not those of the inventory, and for each that is behind."""
    if about is None:
        return []
    own = {changes.canonical(server["address"]) for server in about.servers}
    found = []
    for member in members:
        name, host, service = member["name"], member["host"], about.services[0]
        servers = [server["address"] for server in host.get("followed", {}).get(service, [])]
        if servers and {*servers} != own:
            found.append(f"{name}: {service} keeps the servers that its cluster has: {', '.join(servers)}.")
        found += [f"{name} does not follow its cluster: {why}" for why in host.get("not_following", [])]
    return found


def inventory_servers(services: List[Dict[str, Any]], about: Optional[Follow]) -> Dict[str, int]:
    """Return how many servers the inventory names, by service whose servers are the nodes."""
    followed = about.services if about else []
    return {each["name"]: countable(each["servers"]) for each in services if each["name"] in followed}


def kept(services: List[Dict[str, Any]], about: Optional[Follow], followed: Servers) -> List[Dict[str, Any]]:
    """Return services with the servers that `follow` has written on a member.

    :param followed: as `followed_on` returns it
    """
    if about is None:
        return services
    return [
        {**service, "servers": _kept(service["servers"], followed[service["name"]])}
        if service["name"] in about.services and followed.get(service["name"])
        else service
        for service in services
    ]


def _kept(own: List[Dict[str, Any]], followed: Sequence[Mapping[str, str]]) -> List[Dict[str, Any]]:
    return [{**own[0], "name": each["name"], "address": each["address"]} for each in followed]


def planned(about: Optional[Follow], engine: str, balances: bool, hosts: Dict[str, Any]) -> Dict[str, Any]:
    """Return what a member is to follow, without credentials and paths of its host; nothing where it follows nobody.

    :param balances: whether it has a balancer; without one it follows the names of the nodes alone
    :param hosts: as `resolver.followed` returns it
    """
    if about is None or not (balances or hosts):
        return {}
    settings = about.settings
    own = settings.get("follow_services")
    families = [_family(server["address"]) for server in about.servers]
    return {
        "engine": engine,
        "services": about.services if balances else [],
        "labels": own if balances and isinstance(own, dict) else {},
        "fallbacks": about.fallbacks,
        "api": about.api if balances else [],  # the first one is on a balancer's own host
        "hosts": hosts,
        "kubeconfig": settings["follow_kubeconfig"],
        "nodes": {
            "label": settings["follow_label"] or about.kind.label,
            "families": list(dict.fromkeys(families)),
            "networks": about.networks,
            "of_several": about.kind.of_several,
            "vips": about.vips,
            "balancers": about.balancers,
            "not_ready_for": settings["follow_not_ready_for"],
        },
        "drain_for": settings["follow_drain_for"],
    }


class Files(NamedTuple):
    """The files of a member that follows.

    :ivar credentials: those that the kubeconfig embeds
    :ivar secrets: what nobody may see of them, line by line: a log may have them in one line
    """

    config: Dict[str, Any]
    credentials: List[Dict[str, Any]]
    secrets: List[str]


def files(plan: Mapping[str, Any], credentials: Credentials, paths: Mapping[str, str]) -> Files:
    """Return the files of a member that follows.

    :param plan: as `planned` returns it
    :param paths: of the member's haproxy: ``{config, socket}``
    """
    inside = {name: _path(name) for name in credentials.embedded}
    api = {
        "servers": list(dict.fromkeys([*plan["api"], credentials.server])),
        **credentials.paths,
        **inside,
        "server_name": credentials.server_name,
    }
    targets = [_target(name, plan["labels"].get(name)) for name in plan["services"]]
    balancer: Dict[str, Any] = {"proxy": {"services": targets}}
    if plan["engine"] == engines.NATIVE:
        backends = [{**target, "fallback": plan["fallbacks"].get(target["name"], "")} for target in targets]
        balancer = {"haproxy": {"backends": backends, **paths, "reload": RELOAD, "loaded": "/run/haproxy.loaded"}}
    names = {"hosts": plan["hosts"]} if plan["hosts"] else {}
    fed = {**(balancer if targets else {}), **names}
    whole = {"api": api, "nodes": plan["nodes"], **fed, "drain_for": plan["drain_for"]}
    secret = [line.strip() for name in SECRETS for line in credentials.embedded.get(name, "").splitlines()]
    return Files(
        config={"path": CONFIG, "content": json.dumps(whole, indent=2) + "\n", "mode": PRIVATE, "unit": UNIT},
        credentials=[
            {
                "path": _path(name),
                "state": "present",
                "content": credentials.embedded[name],
                "mode": PRIVATE,
                "diff": False,
            }
            if name in credentials.embedded
            else {"path": _path(name), "state": "absent", "diff": False}
            for name in SUFFIXES
        ],
        secrets=[line for line in secret if line and not line.startswith(BORDER)],
    )


def _target(name: str, label: Optional[str]) -> Dict[str, str]:
    return {"name": name, **({"label": label} if label else {})}


def refused_by_the_agent(made: Files) -> Faults:
    """Return why `follow` would not start with a configuration."""
    return list(config.parse(made.config["content"])[1])


def _family(address: str) -> str:
    return follow_settings.IPV6 if ":" in address else follow_settings.IPV4


def _path(name: str) -> str:
    return ".".join(filter(None, (f"{FOLDER}/{name}", SUFFIXES[name])))


CREDENTIALS = tuple(map(_path, SUFFIXES))  # those that the kubeconfig may embed
EVERY = (CONFIG, *CREDENTIALS)  # the files that a member which follows may have
