# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The direct plane: which servers each service has now, and the table that says it."""

from __future__ import annotations

from typing import Any, FrozenSet, List, Mapping, NamedTuple, Optional

from ..net.arp import mac_text
from ..proxy import settings as proxy
from ..proxy.master.server_states import Dependencies, Health
from ..runtime.loop import MILLION, Loop, Timer
from . import rulesets
from .buckets import Server
from .macs import Macs
from .settings import Service, Settings
from .writer import Writer

JUDGEMENT = 3 * MILLION  # how long the first results of checks are waited for
SHARED_FROM = 65_536  # buckets: with more than that services of the same servers share their maps

Owners = Mapping[str, FrozenSet[str]]  # by service: the addresses of the servers that get new connections

OTHER_LINK = "The interface is another one now, or has another MAC address: the table is written anew."


class Edge(NamedTuple):
    """Everything that a plane uses."""

    loop: Loop
    log: Any  # log.Log
    checks: Any  # a checks.checks_process.ChecksProcess
    macs: Macs
    writer: Writer


class Plane:
    """The services of one balancer."""

    def __init__(self, edge: Edge) -> None:
        self._loop, self._log, checks, self.macs, self.writer = edge
        self.health = Health(
            Dependencies(self._loop, checks, self._log, lambda _updates: self.update(), outage="the last table stays")
        )
        self.settings = Settings("", ())
        self.owners: Owners = {}
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
        if self._stopped or (self._judgement and not self._is_judged()):
            return
        self._release()
        macs, link = self.macs.known, self.macs.link
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

    def stop(self) -> None:
        """Want no other table from now on."""
        self._stopped = True
        self._release()

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
        return state.usable and state.certain

    def _report_faults(self) -> None:
        unknown = self.macs.unknown if self.macs.link else []
        if unknown:
            where = f"{', '.join(unknown)} on {self.settings.interface}"
            self._log.fault("mac", f"Nobody answers for {where}: are these servers on its link?")
        else:
            self._log.cured("mac", "The MAC address of each server is known.")
        for name, found in self.owners.items():
            if found:
                self._log.cured(f"{name} missing", f"{name} is in the table.")
            else:
                self._log.fault(f"{name} missing", f"{name} is not in the table: none of its servers has been up yet.")

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
        """Whether it is known of each server that it is down, or that it is up and where."""
        known = self.macs.known
        states = [self.health[key] for key in self.health.known()]
        return all(each.certain and (each.server.address in known or not each.usable) for each in states)


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
    servers = [
        Server(server.address, max(1, server.weight), drains=server.address not in owners)
        for server in service.balanced.servers
    ]
    return rulesets.Service(vip, service.balanced.port, servers, service.buckets, group)
