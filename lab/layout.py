"""The hosts of a lab, and its names.

Pure. A host's number is the last part of its addresses. A scenario that is not in `LAYOUTS` is a pair.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Tuple

PREFIX = "onprem-lb-lab"
LAB = "lab"  # the network of hosts that stand in one
MACHINES = "machines"  # the variant of hosts with a kernel of their own
VIPS = "vips"  # the network of the VIPs that no host of a lab with routers stands in
LAB_LABEL = "onprem.lb.lab"
CHECKOUT_LABEL = "onprem.lb.checkout"
# Of several next hops a connection takes one and keeps it.
BY_CONNECTION = {"net.ipv4.fib_multipath_hash_policy": "1", "net.ipv6.fib_multipath_hash_policy": "1"}
# A request and its answer may take different routers.
ROUTER = {
    **BY_CONNECTION,
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv4.conf.all.rp_filter": "2",
}


@dataclass(frozen=True)
class Host:
    """A host of the lab, by its name in Ansible. On `ports` it answers HTTP with that name.

    :ivar names: who writes its /etc/resolv.conf: podman, which mounts it, or as in `files/names.sh`
    :ivar variant: what its image has besides, by its name in `image.VARIANTS`
    :ivar networks: where it has an interface each: eth0, eth1, ...; Ansible reaches it in the first
    :ivar gateway: of a router, which forwards between its networks and is the way out of them (the first leads out of
        the lab): the number of the address that others route over, and that another router takes over when it is gone
    """

    name: str
    group: str
    number: int
    ports: Tuple[int, ...] = ()
    names: str = ""
    variant: str = ""
    networks: Tuple[str, ...] = (LAB,)
    gateway: int = 0

    @property
    def router(self) -> bool:
        return self.gateway > 0

    @property
    def machine(self) -> bool:
        """Whether it is a virtual machine, with a kernel of its own, and not a container. It has one interface."""
        return self.variant == MACHINES

    def mac(self, interface: int = 0) -> str:
        """Return a locally administered address, which no other host of this interface's network has."""
        return f"02:00:00:00:{interface:02x}:{self.number:02x}"


PAIR = (
    Host("lb1", "pair", 11),
    Host("lb2", "pair", 12),
    Host("node1", "backends", 21, ports=(80, 443, 8443)),
    Host("node2", "backends", 22, ports=(80, 443, 8443)),
    Host("client", "probe", 31),
)
# The scenario starts their API servers and routers.
IPI = (
    Host("master1", "ipi_masters", 11),
    Host("master2", "ipi_masters", 12),
    Host("master3", "ipi_masters", 13),
    Host("worker1", "ipi_workers", 21),
    Host("client", "probe", 31),
)
# As few as fail over, because each of them starts containers of its own.
PODS = tuple(host for host in IPI if host.name in ("master1", "master2", "client"))
# A server more, which joins in the course of the tests.
DIRECT = (*PAIR[:-1], Host("node3", "backends", 23, ports=(80,)), PAIR[-1])
# The balancers are machines, which can be powered off, and boot.
BOOTED = tuple(replace(host, variant=MACHINES) if host.group == "pair" else host for host in PAIR)
# Their numbers are those of the addresses in `examples/`. The scenario starts more programs on the nodes.
EXAMPLES = (
    Host("lb1", "pair", 11),
    Host("lb2", "pair", 12),
    Host("node1", "backends", 21, ports=(80,)),
    Host("node2", "backends", 31, ports=(80, 443, 8080)),
    Host("client", "probe", 51),
)
# One for each way in which a host has its names, and the client, which gives out addresses.
NAMES = (
    Host("plain", "named", 11, names="file", variant="names"),
    Host("resolved", "named", 12, names="systemd-resolved", variant="names"),
    Host("managed", "named", 13, names="NetworkManager", variant="names"),
    Host("leased", "named", 14, names="dhclient", variant="names"),
    Host("client", "probe", 31, variant="names"),
)
# A balancer and a server in each of two racks, which share no subnet, and clients behind the racks' two routers.
ROUTED = ("uplink", "rack1", "rack2", "clients")
BGP = (
    Host("lb1", "pair", 11, networks=("rack1",)),
    Host("lb2", "pair", 12, networks=("rack2",)),
    Host("node1", "backends", 21, ports=(80, 443, 8443), networks=("rack1",)),
    Host("node2", "backends", 22, ports=(80, 443, 8443), networks=("rack2",)),
    Host("client", "probe", 31, networks=("clients",)),
    Host("r1", "routers", 2, variant="routers", networks=ROUTED, gateway=4),
    Host("r2", "routers", 3, variant="routers", networks=ROUTED, gateway=5),
)
# All in one rack, whose addresses the VIPs are among, as those of a pair are that goes from VRRP to BGP. node1 is a
# client on its link, too.
BGP_MOVE = tuple(replace(host, networks=("rack1",)) if host.networks == ("rack2",) else host for host in BGP)
LAYOUTS = {
    "direct": DIRECT,
    "examples": EXAMPLES,
    "ipi": IPI,
    "ipi-agent": IPI,
    "cluster": IPI,
    "interruptions-ipi": IPI,
    "pods": PODS,
    "names": NAMES,
    "machines": BOOTED,
    "bgp": BGP,
    "bgp-move": BGP_MOVE,
}


@dataclass(frozen=True)
class Lab:
    """The lab of one scenario in one checkout, and all names derived from these."""

    checkout: Path
    scenario: str

    @property
    def hosts(self) -> Tuple[Host, ...]:
        return LAYOUTS.get(self.scenario, PAIR)

    @property
    def networks(self) -> Tuple[str, ...]:
        """The networks in which hosts stand."""
        return tuple(dict.fromkeys(network for host in self.hosts for network in host.networks))

    @property
    def has_routers(self) -> bool:
        return any(host.router for host in self.hosts)

    @property
    def vips(self) -> str:
        """The network of the VIPs: the hosts' own, or beyond routers one that only these know."""
        return VIPS if self.has_routers else LAB

    def leads_out(self, network: str) -> bool:
        """Return whether podman's bridge is the way out of a network. Else its routers are."""
        return all(host.router for host in self.hosts if network in host.networks) or not self.has_routers

    def routers_of(self, host: Host) -> Tuple[Host, ...]:
        """Return the routers that are a host's way out of its first network."""
        if self.leads_out(host.networks[0]):
            return ()
        return tuple(other for other in self.hosts if other.router and host.networks[0] in other.networks)

    def sysctls_of(self, host: Host) -> Dict[str, str]:
        """Return the sysctls that a host needs for its part in routing."""
        if host.router:
            return ROUTER
        return BY_CONNECTION if self.routers_of(host) else {}

    @property
    def checkout_id(self) -> str:
        return hashlib.sha256(str(self.checkout).encode()).hexdigest()[:6]

    @property
    def id(self) -> str:
        return f"{self.checkout_id}-{self.scenario}"

    @property
    def name(self) -> str:
        """The prefix of the names of every network and container."""
        return f"{PREFIX}-{self.id}"

    def container(self, host: str) -> str:
        return f"{self.name}-{host}"

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of all that belongs to this lab."""
        return (
            f"--label={LAB_LABEL}={self.id}",
            f"--label={CHECKOUT_LABEL}={self.checkout_id}",
        )

    @property
    def cache(self) -> Path:
        return self.checkout / ".cache" / "lab"

    @property
    def folder(self) -> Path:
        return self.cache / self.scenario

    @property
    def inventory(self) -> Path:
        """The inventory's path. `up` writes it last and `down` removes it first: if it exists, the lab is complete."""
        return self.folder / "inventory.yml"
