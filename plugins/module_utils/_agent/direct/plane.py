# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The direct plane: which servers each service has now, and the table that says it."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional

from ..net.arp import mac_text
from ..proxy import settings as proxy
from ..proxy.master.server_states import MAINT, Dependencies, Health, ServerState
from ..runtime.loop import MILLION, Loop, Timer
from . import buckets, hashing, proofs, rulesets
from .macs import Macs
from .packets import Packets
from .prober import Prober
from .second_chances import Way
from .settings import HOST, Service, Settings
from .writer import Writer

JUDGEMENT = 3 * MILLION  # how long the first results of checks are waited for
SHARED_FROM = 65_536  # buckets: with more than that services of the same servers share their maps

Owners = Mapping[str, FrozenSet[str]]  # by service: the addresses of the servers that get new connections

NO_SERVER = (
    "is not in the table: none of its servers has been up, with a path that is proven. Its connections are left to the "
    "programs of this host, such as a proxy."
)
OTHER_LINK = "The interface, or its MAC address, has changed: the table is rewritten."


class Edge(NamedTuple):
    """Everything that a plane uses."""

    loop: Loop
    log: Any  # log.Log
    checks: Any  # a checks.checks_process.ChecksProcess
    macs: Macs
    writer: Writer
    prober: Prober


class Plane:
    """The services of one balancer."""

    def __init__(self, edge: Edge) -> None:
        self._loop, self._log, checks, self.macs, self.writer, self.prober = edge
        self.prober.chances.way = self._way
        self.health = Health(
            Dependencies(self._loop, checks, self._log, lambda _updates: self.update(), outage="the last table stays")
        )
        self.settings = Settings("", ())
        self.owners: Owners = {}  # in the table that is wanted
        self._here: FrozenSet[str] = frozenset()  # the servers that are this host
        self._known: Any = None  # what the last table was made of
        self._judgement: Optional[Timer] = None  # while first results are waited for
        self._stopped = False

    def apply(self, settings: Settings) -> None:
        """Put settings in force. The table stays as it is until every server was checked, but not for long."""
        self.settings = settings
        services = [service.balanced for service in settings.services]
        self._hold()
        self.health.apply(services)
        self.macs.want(settings.interface, {server.address for each in services for server in each.servers})
        self.update()

    def update(self) -> None:
        """Have the kernel have the table that follows from what is known now."""
        if self._stopped:
            return
        self._here = here_of(self.macs)
        self.prober.want(self.macs.link, self._targets())
        if self._judgement and not self._is_judged():
            return
        self._release()
        macs, link = self._macs(), self.macs.link
        self.owners = owners_of(self._servers(macs, usable=True), self._servers(macs), self.owners)
        self._report_faults()
        known = (self.owners, macs, link and (link.index, link.mac), self.settings)
        if link and known != self._known:
            self._known = known
            services = _services_of(self.settings, self.owners)
            self.writer.want(rulesets.of_balancer(services, link.name, macs, mac_text(link.mac)))

    def changed_link(self, other: bool) -> None:
        """The MAC of a server or the link has changed.

        :param other: whether it is the link
        """
        if other and self.macs.link:
            self._log.cured("link", f"{self.settings.interface} is there again.")
            self._known = None
            self.update()
            self.writer.lost(OTHER_LINK)
        elif other:
            self._log.fault("link", f"There is no interface {self.settings.interface}, and so no table.")
        self.update()

    @property
    def in_force(self) -> Optional[rulesets.Table]:
        """The table that the kernel has."""
        return self.writer.in_force if self.macs.link else None

    @property
    def is_there(self) -> bool:
        """Whether the kernel has the table, or one of an earlier run."""
        return bool(self.macs.link and self.writer.is_there)

    def stop(self) -> None:
        """Want no other table from now on."""
        self._stopped = True
        self._release()

    def usable(self, service: proxy.Service) -> int:
        """Return how many servers may get new connections."""
        return sum(self._is_usable(service, server) for server in service.servers)

    def is_proven(self, service: proxy.Service, server: proxy.Server) -> bool:
        """Whether a server is known to answer for each VIP of its service. This host needs no proof of itself."""
        return server.address in self._here or all(path.proven for path in self._paths(service, server).values())

    def fault_of(self, service: proxy.Service, server: proxy.Server) -> str:
        """Return what is wrong with the first path to a server that is wrong; '' if none is known to be."""
        found = self._paths(service, server).items()
        sentences = (proofs.sentence(path, key, server.name, self.settings.interface) for key, path in found)
        return next(filter(None, sentences), "")

    def mtu_fault(self) -> str:
        """Return what is wrong with the interface's MTU; '' if nothing is known to be."""
        return proofs.too_small(self.prober.mtu(), self.settings.interface, self.prober.paths)

    def gives_chances(self, service: proxy.Service, server: proxy.Server) -> Optional[bool]:
        """Whether a server gives second chances for each VIP of its service; None if that is not known."""
        found = [self.prober.chances.of(key).given for key in self._paths(service, server)]
        return False if False in found else None if None in found else True

    def fault_of_chances(self, service: proxy.Service, server: proxy.Server) -> str:
        """Return what is wrong with a server that gives no second chances; '' if that is not known."""
        known = {key: self.prober.chances.of(key) for key in self._paths(service, server)}
        lost = next((key for key, chance in known.items() if chance.given is False), None)
        return proofs.without_chances(lost, server.name, known[lost].by_other_list) if lost else ""

    def fault_of_clients(self, service: proxy.Service, server: proxy.Server, packets: Packets) -> str:
        """Return what is wrong with a server of which clients hear nothing; '' if that is not known."""
        key = (service.bind[0], service.port, server.address)
        return proofs.unanswered(key, server.name, packets.unanswered(*key))

    def report_clients(self, packets: Packets) -> None:
        """Log each server of which clients hear nothing, and that they do again."""
        for service in (each.balanced for each in self.settings.services):
            for server in service.servers:
                name, fault = f"{service.name}/{server.name}", self.fault_of_clients(service, server, packets)
                if fault:
                    self._log.fault(f"{name} clients", f"{service.name}/{fault}")
                else:
                    self._log.cured(f"{name} clients", f"{name} answers clients again.")

    # -- the paths

    def _paths(self, service: proxy.Service, server: proxy.Server) -> Dict[proofs.Key, proofs.Path]:
        keys = [(vip, service.port, server.address) for vip in service.bind]
        return {key: self.prober.paths.get(key, proofs.Path()) for key in keys}

    def _way(self, key: proofs.Key, source: str, port: int) -> Way:
        """Return the way of what a server hands on; nothing of an answer of this host, which no link carries."""
        vip, at, asked = key
        found = [each for each in self.settings.services if at == each.balanced.port and vip in each.balanced.bind]
        if not found:
            return Way()
        service = found[0]
        number = hashing.bucket(source, port, service.buckets, rulesets.SEED)
        bucket = buckets.bucket(service.servers, service.buckets, number)
        answering = bucket.answering(asked)
        return Way(bucket.other([asked]), "" if answering in self._here else self.macs.known.get(answering, ""))

    def _targets(self) -> Dict[proofs.Key, proofs.Target]:
        """Return the paths to prove: those to the servers whose MAC is known, but this host."""
        known, addresses = self.macs.known, self.macs.addresses
        found: Dict[proofs.Key, proofs.Target] = {}
        services = [each.balanced for each in self.settings.services]
        vips = {vip for service in services for vip in service.bind}
        sources = {address: proofs.source_of(address, addresses, vips) for address in known}
        for service in services:
            for server in service.servers:
                address, alive = server.address, self.health.server_state(service, server).healthy
                if address in known and address not in self._here:
                    target = proofs.Target(known[address], sources[address], alive)
                    found.update({(vip, service.port, address): target for vip in service.bind})
        return found

    def _macs(self) -> Dict[str, str]:
        """Return the MACs for the table: one that is new waits for its proof."""
        judged = {address: path.mac for (_vip, _port, address), path in self.prober.paths.items() if path.mac}
        return {**judged, **{address: mac for address, mac in self.macs.known.items() if address in self._here}}

    # -- who gets what

    def _servers(self, macs: Mapping[str, str], usable: bool = False) -> Owners:
        """Return the servers whose MAC is known, all of them or those that may get new connections."""
        return {
            service.balanced.name: frozenset(
                server.address
                for server in service.balanced.servers
                if server.address in macs and (not usable or self._is_usable(service.balanced, server))
            )
            for service in self.settings.services
        }

    def _is_usable(self, service: proxy.Service, server: proxy.Server) -> bool:
        state = self.health.server_state(service, server)
        return state.usable and state.certain and self.is_proven(service, server)

    def _report_faults(self) -> None:
        unknown = self.macs.unknown if self.macs.link else []
        if unknown:
            where = f"{', '.join(unknown)} on {self.settings.interface}"
            self._log.fault("mac", f"Nobody answers for {where}: are these servers on its link?")
        else:
            self._log.cured("mac", "The MAC address of each server is known.")
        too_small = self.mtu_fault()
        if too_small:
            self._log.fault("mtu", too_small)
        else:
            self._log.cured("mtu", f"{self.settings.interface} takes what the servers take.")
        for service in self.settings.services:
            self._report_paths(service.balanced)
        for name, found in self.owners.items():
            if found:
                self._log.cured(f"{name} missing", f"{name} is in the table.")
            else:
                self._log.fault(f"{name} missing", f"{name} {NO_SERVER}")

    def _report_paths(self, service: proxy.Service) -> None:
        """Log each server that lives and has no path, and that it has one again."""
        for server in service.servers:
            key, fault = f"{service.name}/{server.name} path", self.fault_of(service, server)
            if fault and self.health.server_state(service, server).admin_state != MAINT:
                self._log.fault(key, f"{service.name}/{fault} Until then it gets no connections of this plane.")
            elif self.is_proven(service, server):
                self._log.cured(key, f"{service.name}/{server.name} answers for the VIP.")
            self._report_chances(service, server)
        if self.owners.get(service.name) and self.health.usable(service.name) and not self.usable(service):
            self._log.fault(f"{service.name} paths", f"{service.name} has no path to a server: the last table stays.")
        else:
            self._log.cured(f"{service.name} paths", f"{service.name} has a path to a server again.")

    def _report_chances(self, service: proxy.Service, server: proxy.Server) -> None:
        key, fault = f"{service.name}/{server.name} second chances", self.fault_of_chances(service, server)
        if fault:
            self._log.fault(key, f"{service.name}/{fault}")
        elif self.gives_chances(service, server):
            self._log.cured(key, f"{service.name}/{server.name} hands on what it does not have again.")

    # -- the wait for first results

    def _hold(self) -> None:
        if not self._judgement:
            self._judgement = self._loop.after(JUDGEMENT, self._judge)

    def _judge(self) -> None:
        self._release()
        self.update()

    def _release(self) -> None:
        if self._judgement:
            self._judgement.cancel()
        self._judgement = None

    def _is_judged(self) -> bool:
        """Whether it is known of each server that it is down, or that it is up and whether it answers for the VIPs."""
        states = [self.health[key] for key in self.health.known()]
        return all(each.certain and (not each.usable or self._is_path_judged(each)) for each in states)

    def _is_path_judged(self, state: ServerState) -> bool:
        if state.server.address in self._here:
            return True
        return all(path.judged for path in self._paths(state.service, state.server).values())


def here_of(macs: Macs) -> FrozenSet[str]:
    """Return the servers that are this host."""
    own = mac_text(macs.link.mac) if macs.link else None
    return frozenset(address for address, mac in macs.known.items() if mac == own)


def owners_of(usable: Owners, there: Owners, before: Owners) -> Owners:
    """Return the servers of each service: those that are usable, or without any those that it had and still has."""
    return {name: found or before.get(name, frozenset()) & there[name] for name, found in usable.items()}


def _services_of(settings: Settings, owners: Owners) -> List[rulesets.Service]:
    total = sum(each.buckets for each in settings.services)
    return [
        _service_of(each, vip, owners[each.balanced.name], "" if total > SHARED_FROM else each.balanced.name)
        for each in settings.services
        for vip in each.balanced.bind
    ]


def _service_of(service: Service, vip: str, owners: FrozenSet[str], group: str) -> rulesets.Service:
    servers = [server._replace(drains=server.address not in owners) for server in service.servers]
    left = service.new_connections == HOST
    return rulesets.Service(vip, service.balanced.port, servers, service.buckets, group, service.proxy_port, left)
