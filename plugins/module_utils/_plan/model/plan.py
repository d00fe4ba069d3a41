# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a layout, typed: what each member runs, and what becomes of each VIP in every single failure."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..._agent.config.schema import Faults
from ..._shared.membership import carriers
from .services import planned


class Vip(NamedTuple):
    """One VIP, its VRID, and the members that may hold it, best first."""

    address: str
    prefix: Optional[int]
    name: str  # of its instances
    vrid: int = 0
    order: List[str] = []

    @property
    def version(self) -> int:
        return 6 if ":" in self.address else 4

    @property
    def held_as(self) -> int:
        """The prefix length with which a member has it."""
        return (128 if self.version == 6 else 32) if self.prefix is None else self.prefix

    @property
    def with_prefix(self) -> str:
        return self.address if self.prefix is None else f"{self.address}/{self.prefix}"


class Redirect(NamedTuple):
    """Ports of the VIPs that nftables passes on to other ports of the host that holds them."""

    vips: List[str]
    ports: Dict[int, int]  # by port of the VIPs, that of the balancer
    direct_interface: str = ""  # where what comes in is for the direct plane, and not redirected


class Balancer(NamedTuple):
    """The configuration of a member's balancer. A member without services has none."""

    services: List[Dict[str, Any]] = []
    contents: Dict[str, str] = {}  # the texts of certificates, by the paths of their files; nobody may see them
    inventory_servers: Dict[str, int] = {}  # how many the inventory names, by service that follows the cluster
    monitors: List[Dict[str, Any]] = []
    served_elsewhere: List[str] = []  # checksums of the files that the haproxy of other members has loaded
    down_file: str = ""
    answer_port: int = 0  # on 127.0.0.1, where it answers unless it hangs
    also_answers: List[int] = []  # other such ports that are still in use
    peers: List[Dict[str, str]] = []  # who share stick tables: ``{name, address}``
    peers_port: int = 0
    timeouts: Dict[str, str] = {}
    stats_port: Optional[int] = None
    start_commands: List[str] = []  # which its unit runs once it listens; likewise
    stop_commands: List[str] = []
    redirect: Optional[Redirect] = None
    guard: str = ""  # the nftables ruleset before the machine config server


class Router(NamedTuple):
    """The configuration of a member's VRRP router. A member without instances has none."""

    instances: List[Dict[str, Any]]
    scripts: List[Dict[str, Any]]
    track_files: List[Dict[str, Any]]
    sync_groups: List[Dict[str, Any]] = []

    @property
    def peers(self) -> List[str]:
        return sorted({peer for instance in self.instances for peer in instance["peers"]})

    @property
    def sources(self) -> List[str]:
        return sorted({instance["source"] for instance in self.instances})

    @property
    def interfaces(self) -> List[str]:
        """Those on which it is heard, and those of the VIPs."""
        own = {instance["interface"] for instance in self.instances}
        return sorted(own.union(*(carriers(instance).values() for instance in self.instances)))


class Firewall(NamedTuple):
    """What a member's firewall lets in."""

    ports: List[int]  # for everybody
    restricted_ports: List[Dict[str, Any]]  # ``{port, networks}``, with ``protocol`` where it is not TCP
    vrrp_peers: List[str]
    interfaces: List[str]
    keep: bool = False  # whether what an earlier run has let in still may

    @property
    def every_port(self) -> List[int]:
        return [*self.ports, *(restricted["port"] for restricted in self.restricted_ports)]


class Meanwhile(NamedTuple):
    """What takes the place of these parts of a member's plan during the run, as `still_asked` returns it."""

    balancer: Balancer
    firewall: Firewall


class Expected(NamedTuple):
    """What `layout_info` must find on a member."""

    vips: List[Vip]
    services: List[Dict[str, Any]]
    targets: List[List[Any]]
    units: List[str]
    programs: List[str]
    down_file: str = ""
    excused: List[str] = []  # the instances that may be in FAULT, because no VIP of them was served before the run
    settle: float = 0  # for how many seconds the verification lasts at least
    peers: Dict[str, List[str]] = {}  # by VIP: the addresses of the others that may hold it
    judged: float = 0  # also for so many, until a router has judged each check that changes
    sessions: List[str] = []  # the routers to which it announces VIPs by BGP
    bfd_interval: int = 0  # in milliseconds, with which the forecast reckons
    announced: List[str] = []  # those VIPs, which are on its lo
    elects: bool = True  # whether VRRP has one holder for each VIP
    every_path: bool = False  # whether each of these routers must have the path to each VIP
    peered: List[List[Any]] = []  # ``[address, port]`` of the others with which its haproxy shares stick tables


class MemberPlan(NamedTuple):
    """The plan of one member: each part is what one component is called with."""

    engine: str
    replaces: str  # the engine that goes, or nothing; the same one where only its delivery changes
    replaced_programs: List[str]
    balancer: Balancer
    router: Router
    firewall: Firewall
    expected: Expected
    meanwhile: Optional[Meanwhile] = None  # with the balancer's old ports, until nothing uses them any more
    asked: List[Dict[str, Any]] = []  # what its router's checks ask of its balancer, as `model.asked` takes it
    # The plan for the engine that goes, where this member's router alone runs while the settings on the link change.
    replaced_router: Optional[Router] = None
    proof: Optional[Expected] = None  # what it must show before the next members change
    follow: Dict[str, Any] = {}  # as `follow.planned` returns it
    resolver: Dict[str, Any] = {}  # as `resolver.planned` returns it
    direct: Dict[str, Any] = {}  # the configuration of its direct plane, as `config_files` takes it
    direct_memory: int = 0  # MiB that the plane may need
    direct_server: Dict[str, Any] = {}  # what the role of this name is called with, on a member that is a server
    interrupted: str = ""  # the program that its change stops, so that it hands its VIPs over first
    moves_from: str = ""  # the delivery that goes, where another one comes: unit or pod
    checks: List[Dict[str, Any]] = []  # those of the user that change, as `changed_checks.changed` returns them
    questions: List[
        Dict[str, Any]
    ] = []  # what is asked all the time beside keepalived, as `keepalived.answers.question` has it
    pods: Dict[str, str] = {}  # the options of its static pods; nothing where it has units
    resigns_when_killed: bool = True  # whether the host of a keepalived that is killed resigns for it
    unused: List[str] = []  # the component roles that an earlier run has set up, and this plan does not need
    bgp: Dict[str, Any] = {}  # as `announcing.Bgp.of` returns it; nothing where VRRP alone carries the VIPs
    leaves: Dict[str, Any] = {}  # how it leaves while its engine changes, as `bgp.engines.leaving` has it
    quiet: str = ""  # where VIPs are on its lo beside VRRP, for which it must not answer: MEANWHILE or ALWAYS


class Departed(NamedTuple):
    """A member that has left the inventory; without a record of its name it is called by its address."""

    name: str
    address: str
    irreplaceable: List[str] = []  # the VIPs that no router of a present member is known to serve


class Undo(NamedTuple):
    """Who returns to the settings of before, unless the run confirms the new ones."""

    members: List[str] = []  # none where there is nothing to go back to
    first: str = ""  # the one to return before the routers of the others start again; '' if nothing on the link changes
    settle: float = 0  # for how many seconds a router waits at most before it takes VIPs that nobody holds
    judged: float = 0  # for how many seconds more the run may be silent, while routers judge their checks
    reason: str = ""  # why nobody does, and what follows from that
    first_addresses: List[str] = []  # of the first one


MEANWHILE, ALWAYS = "meanwhile", "always"


class Move(NamedTuple):
    """A change of what carries the VIPs of living members, between VRRP and BGP; without `to` some only end theirs."""

    to: str = ""  # the reach of the plan
    came_from: str = ""
    announcing: List[str] = []  # those that begin to announce, one after the other, once the balancers are as planned
    stopping: List[str] = []  # those that end what the plan does not have, at the end and one after the other
    told: List[str] = []  # a line for each step


class Plan(NamedTuple):
    """The plan of a layout. With faults everything else is empty."""

    faults: Faults
    warnings: List[str] = []
    vips: List[Vip] = []
    members: Dict[str, MemberPlan] = {}
    targets: List[List[Any]] = []  # ``[address, port]``: every service through every VIP
    watched: Dict[str, Dict[str, Any]] = {}  # as `forecast.forecast` takes it
    weighted: List[str] = []  # the names of the user's checks with a weight
    advert_interval: float = 1
    migration_order: List[str] = []  # the members that change their engine
    sole_router: str = ""  # the member whose router alone runs while settings change that all must share
    order: List[List[str]] = []  # of the members, for a change: the Backups, then each holder; nothing for all at once
    routers_together: bool = False  # whether the routers change at one time, after the balancers
    leaving: List[str] = []  # those that give a Virtual Router up which others keep: they stop before those change
    joining: List[str] = []  # those that have to run one which others run: they start it when all send to them
    waiting: List[str] = []  # those whose routers start last, when the static pods that hold the VIPs are disabled
    move: Move = Move()
    undo: Undo = Undo()
    departed: List[Departed] = []  # to be stopped before the others change
    record: Dict[str, Any] = {}  # the addresses of each member, and the version, which the next run reads
    links: Dict[str, Dict[str, int]] = {}  # as `links.of_members` returns them
    engines: List[str] = []  # a line for each member: its engine, and why
    snippet: List[str] = []  # lines for the configuration of the cluster behind it
    sends: List[Any] = []  # `destinations.Destination`s, until all of the run's layouts are judged together
    outages: List[Dict[str, Any]] = []  # as `forecast.forecast` returns them
    table: List[str] = []  # the same in words


def as_data(value: Any) -> Any:
    """Return a plan, or a part of it, in mappings and lists alone. The services of a balancer are JSON.

    Ansible walks through each value of a fact at each use of it, which shows with thousands of servers.
    """
    if isinstance(value, Balancer):
        return {**as_data(value._replace(services=[])._asdict()), "services": json.dumps(value.services)}
    if hasattr(value, "_asdict"):
        return as_data(value._asdict())
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    return [as_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def member_of(data: Mapping[str, Any]) -> MemberPlan:
    """Return the plan of a member of which `as_data` has made data; what it expects stays such.

    :param data: of a member during a run, with its `meanwhile` in place of the parts that it replaces
    """
    parts = {
        "balancer": _balancer_of(data["balancer"]),
        "router": Router(**data["router"]),
        "firewall": Firewall(**data["firewall"]),
    }
    return MemberPlan(**{**data, **parts, "meanwhile": None})


def _balancer_of(data: Mapping[str, Any]) -> Balancer:
    redirect = data["redirect"]
    ports = {int(port): to for port, to in redirect["ports"].items()} if redirect else {}
    parts = {
        "services": planned(data["services"]),
        "redirect": redirect and Redirect(**{**redirect, "ports": ports}),
    }
    return Balancer(**{**data, **parts})
