# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon: gives the state machines a clock and events, and carries out their effects in order.

Everything outside comes in through ``Dependencies``, so that tests can replace it. Nothing here blocks: checks and
notify programs run in a process of their own, and what cannot be sent at once is dropped.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ..checks.checks_process import Result
from ..checks.results import CheckResults
from ..net import netlink
from ..net.addresses import REPLACED
from ..runtime.loop import MILLION, Loop, Timer
from . import links, reload, report, settings
from .addresses import VirtualAddresses
from .core import effects, machine, sync_group, tracking
from .notices import Notices
from .offering import Offering
from .other_holders import OtherHolders
from .router import ADDRESSES, Router, link_reading
from .routes import VirtualRoutes
from .transport import Transport

# How long to wait before addresses that the kernel refused are tried again.
ADDRESS_BACKOFF, ADDRESS_BACKOFF_MAX = 10 * MILLION, 300 * MILLION
SOCKET_RETRY = 10 * MILLION  # before a socket that could not be opened is tried again
REMOVED = "another program had removed it"
ADDRESS_EVENTS = (netlink.AddressUpdated, netlink.AddressGone)


class Dependencies(NamedTuple):
    """Everything that the daemon uses."""

    loop: Loop
    network: Any  # net.network.Network
    checks: Any  # checks.client.Checks
    log: Any  # log.Log
    wall: Callable[[], float] = time.time  # seconds since 1970


class Daemon:
    """The Virtual Routers of this host."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.loop, self.network, self.checks, self.log, self.wall = dependencies
        self.settings = settings.Settings(())
        self.routers: Dict[str, Router] = {}
        self.results = CheckResults(self.wall)
        self.links = links.Links()
        self.addresses = VirtualAddresses(self.loop, self.network, self.links, self.log)
        self.routes = VirtualRoutes(self.network, self.log)
        self.other_holders = OtherHolders(
            self.loop, self.network, self.links, self.log, lambda: [*self.routers.values()]
        )
        self.notices = Notices(self.loop, self.links, self.results, self.checks, self.log)
        self.transport = Transport(self.loop, self.network, self.links, self.log, self._receive)
        self.offering = Offering(self.loop, self.results, lambda: [*self.routers.values()], self.transport)
        self._virtual_addresses: Set[str] = set()
        self._retry: Optional[Timer] = None
        self._starts_at = 0  # when the startup delay is over
        self._on_resigned: Optional[Callable[[], None]] = None

    def start(self, new: settings.Settings) -> None:
        self.loop.watch(self.network.netlink.fileno(), self._receive_netlink)
        self.links.learn(self.network.netlink.links(), self.network.netlink.addresses())
        self._starts_at = self.loop.now() + new.startup_delay
        self.apply(new)
        self.routes.remove_leftovers(self.routers.values())

    def advertise(self) -> None:
        """Advertise once more: Backups wait for three intervals from now on, in which another process may start."""
        for router in self.routers.values():
            if router.active:
                self.transport.sending(router, router.priority)()

    def resign(self, done: Callable[[], None]) -> None:
        """Resign, but keep the addresses until another router serves them.

        :param done: called when no router is Leaving any more
        """
        self._on_resigned = done
        for router in self.routers.values():
            self.step(router, machine.Stop(keep_until_taken=True))
        self._finish_resigning()

    def _finish_resigning(self) -> None:
        if self._on_resigned and not any(router.leaving for router in self.routers.values()):
            self._on_resigned()

    def stop(self) -> None:
        """Stop all routers at once."""
        for router in self.routers.values():
            self.step(router, machine.Stop())
        self.transport.close()
        self.other_holders.close()

    def held(self) -> List[str]:
        """Return the virtual addresses that are on this host's interfaces."""
        return [found.address for router in self.routers.values() for found in self.links.held(router.addresses)]

    def apply(self, new: settings.Settings) -> None:
        """Switch to other settings. Unchanged routers go on."""
        reload.apply(self, new)

    def use(self, new: settings.Settings, routers: Dict[str, Router]) -> None:
        """Put settings in force, each router by its name in them."""
        self.settings, self.routers = new, routers
        self.offering.update()
        self._virtual_addresses = {each.ip for one in new.instances for each in settings.virtual_addresses(one)}
        if any(each.virtual_routes for each in new.instances):
            self.network.netlink.follow_routes()
        self.notices.apply(new)

    def report_groups(self) -> None:
        for group in self.settings.groups:
            self.notices.group_changed(group, self.members_of(group))

    def start_router(self, router: Router) -> None:
        """Let a router take part, once the startup delay is over; at once if a former process left its addresses."""
        holding = bool(self.links.held(router.addresses))
        if self.loop.now() < self._starts_at and not holding:
            self.loop.at(self._starts_at, lambda: self._start_delayed(router))
            return
        self.update_trackers(router)
        self.step(router, machine.Start(holding))

    def _start_delayed(self, router: Router) -> None:
        if router in self.routers.values() and not self._on_resigned:
            self.start_router(router)

    def restore(self, router: Router, why: str) -> None:
        """Put back the addresses and routes that an Active router has lost."""
        self._restore_addresses(router, why)
        self._restore_routes(router, why)

    def _restore_addresses(self, router: Router, why: str) -> None:
        missing = self.addresses.missing(router)
        if not missing:
            return
        if not self.addresses.adding(router, missing)():
            self._addresses_refused(router)
            return
        for interface in dict.fromkeys(each.interface for each in missing):
            there = [each.address for each in missing if each.interface == interface]
            self.log.warning(f"{router.name}: {', '.join(there)} put on {interface}: {why}")
        self.addresses.announce(router)

    def _restore_routes(self, router: Router, why: str) -> None:
        if router.active and not self.routes.restore(router, why):
            self._addresses_refused(router)

    def step(self, router: Router, event: machine.Event, when: Optional[int] = None) -> None:
        """Step a router's state machine with an event, and carry out the effects.

        :param when: the time of the event, if not now
        """
        members = self._members(router)
        routers, states = [member.machine for member in members], [member.state for member in members]
        after, actions = sync_group.step(routers, states, members.index(router), event, when or self.loop.now())
        for member, state in zip(members, after):
            member.state = state
        # All calls are built before the first is made: clients wait from the Advertisement to the announcement.
        calls = [(at, self._performing(members[at], effect)) for at, effect in actions]
        refused: Set[int] = set()
        for at, call in calls:
            if at not in refused and call() is False:
                refused.add(at)
        for member in members:
            self._set_timer(member)
        self._group_changed(router, actions)
        for at in refused:
            self._addresses_refused(members[at])

    def _receive(self, router: Router, received: machine.Received, arrived: int) -> None:
        """Process a valid Advertisement."""
        was_active = router.active
        self.step(router, received, arrived)
        if was_active and router.active and received.advertisement.priority:
            group = settings.group_of(self.settings, router.name)
            self.notices.lower_received(router, group, received, arrived)
        if was_active and not router.active:
            self.transport.find(router, received.source)

    def _members(self, router: Router) -> Sequence[Router]:
        """Return the router's sync group; without one, the router alone."""
        group = settings.group_of(self.settings, router.name)
        found = self.members_of(group) if group else []
        return found if router in found else [router]

    def members_of(self, group: settings.Group) -> Sequence[Router]:
        return [self.routers[name] for name in group.instances if name in self.routers]

    def _group_changed(self, router: Router, actions: sync_group.Effects) -> None:
        """Report the group after all of its members, whose states changed together."""
        if any(isinstance(effect, effects.StateChanged) for _at, effect in actions):
            group = settings.group_of(self.settings, router.name)
            if group:
                self.notices.group_changed(group, self.members_of(group))

    def _set_timer(self, router: Router) -> None:
        """Make the timer fire no later than the deadline; if it fires earlier, it is set again."""
        deadline, timer = router.state.deadline, router.timer
        if timer and (deadline is None or timer.at > deadline):
            timer.cancel()
            router.timer = timer = None
        if deadline is not None and timer is None:
            router.timer = self.loop.at(deadline, lambda: self._timer_fired(router))

    def _timer_fired(self, router: Router) -> None:
        router.timer = None
        if router.awaiting_timeout and self._is_expired(router):
            self.transport.catch_up(router)  # an Advertisement may have arrived that this process was too late to read
        if self._is_expired(router):
            self.step(router, machine.Timeout())
            self._finish_resigning()
        self._set_timer(router)

    def _is_expired(self, router: Router) -> bool:
        return router.state.deadline is not None and self.loop.now() >= router.state.deadline

    def _performing(self, router: Router, effect: effects.Effect) -> Callable[[], Optional[bool]]:
        """Return a call that carries out an effect; it returns False if the kernel refused the addresses."""
        if isinstance(effect, effects.Send):
            return self.transport.sending(router, effect.priority)
        if isinstance(effect, effects.AddAddresses):
            return self._adding(router)
        if isinstance(effect, effects.RemoveAddresses):
            return partial(self._remove, router)
        if isinstance(effect, effects.Announce):
            return self.addresses.announcing(router)
        return partial(self._state_changed, router, effect)

    def _adding(self, router: Router) -> Callable[[], bool]:
        calls = self.addresses.adding(router, router.addresses), self.routes.adding(router)
        return lambda: all(call() for call in calls)

    def _remove(self, router: Router) -> None:
        self.routes.remove(router, router.instance.virtual_routes)
        self.addresses.remove(router, router.addresses)

    def _state_changed(self, router: Router, change: effects.StateChanged) -> None:
        """Do what need not come before the announcement of the addresses, which clients wait for."""
        self.notices.state_changed(router, change, self._members(router))
        if change.after == machine.ACTIVE:
            router.refused_for = 0
            self.addresses.remove_strays(router, REPLACED)
            self.other_holders.expect()
            self.transport.unanswered.ask(router)

    def _addresses_refused(self, router: Router) -> None:
        """Enter FAULT: without its addresses a router must not be Active, and another one may get them."""
        router.refused_for = min(max(ADDRESS_BACKOFF, 2 * router.refused_for), ADDRESS_BACKOFF_MAX)
        self.step(router, machine.TrackerUpdate(ADDRESSES, tracking.FAULT))
        self.loop.after(router.refused_for, lambda: self._retry_addresses(router))

    def _retry_addresses(self, router: Router) -> None:
        if router.state.readings.get(ADDRESSES, 0) is tracking.FAULT:
            self.step(router, machine.TrackerUpdate(ADDRESSES, 0))

    def take_result(self, result: Result) -> None:
        """Apply the result of a check."""
        check = next((check for check in self.settings.checks if check.name == result.name), None)
        if check is None:  # it was removed while the result was under way
            return
        self.results.record(result)
        for router in self.routers.values():
            for event in router.tracker_updates(check, result.up, result.value):
                self.step(router, event)
        self.offering.update()

    def _lose_egress(self, router: Router, egress: links.Egress) -> None:
        """Resign through the old egress, as long as anything can still be sent there."""
        router.has_link = egress.link is None or egress.up  # one that was renamed still has it
        usable = {router.link_reading: egress.up and egress.follows(router.egress)}
        for interface, before in router.carriers.items():
            carrier = self._carrier(interface)
            usable[link_reading(interface)] = carrier.up and carrier.follows(before)
        for name, good in {**usable, router.source_reading: router.may_go_on_from(egress)}.items():
            if not good:
                self._update_tracker(router, name, good)

    def _carrier(self, interface: str) -> links.Egress:
        return links.Egress(self.links.named(interface))

    def _use_egress(self, router: Router, egress: links.Egress) -> None:
        """Send from a new egress. A router that cannot send would become Active beside another one."""
        carriers = {name: self._carrier(name) for name in router.carriers}
        moved = [router.instance.interface] if egress.has_another_mac(router.egress) else []
        moved += [name for name, carrier in carriers.items() if carrier.has_another_mac(router.carriers[name])]
        router.carriers = carriers
        if egress != router.egress:
            router.move(egress)
        for name, carrier in carriers.items():
            self._update_tracker(router, link_reading(name), carrier.up)
        self._update_tracker(router, router.link_reading, egress.up and self.transport.is_open(router))
        self._update_tracker(router, router.source_reading, router.may_go_on_from(egress))
        for name in moved if router.active else ():
            self.addresses.announce_mac(router, name)

    def _update_tracker(self, router: Router, name: str, good: bool) -> None:
        reading = tracking.check(0, good)
        if name in router.names and router.state.readings.get(name, "not read") != reading:
            self.step(router, machine.TrackerUpdate(name, reading))

    def update_trackers(self, router: Router) -> None:
        """Update all trackers of a router."""
        self._use_egress(router, router.egress)
        for check in self.settings.checks:
            found = self.results.get(check.name)
            for event in router.tracker_updates(check, found.result.up, found.result.value) if found else []:
                self.step(router, event)

    def _receive_netlink(self, _events: int) -> None:
        """Process changes of links and addresses."""
        received = self.network.netlink.events()
        lost = any(isinstance(event, netlink.Lost) for event in received)
        if lost:
            self.links.learn(self.network.netlink.links(), self.network.netlink.addresses())
        for event in received:
            self.links.update(event)
        if not all(self._is_virtual(event) for event in received):
            self.follow_links()
        changed = {event.address.address for event in received if isinstance(event, ADDRESS_EVENTS)}
        for router in self.routers.values():
            if lost or changed.intersection(router.ips):
                self._check_addresses(router)
            self._restore_routes(router, REMOVED)

    def _check_addresses(self, router: Router) -> None:
        """Undo what another program has done to the addresses: they belong to the agent alone."""
        if router.active:
            self._restore_addresses(router, REMOVED)
        self.addresses.remove_strays(router)

    def _is_virtual(self, event: Any) -> bool:
        """Whether it is about a virtual address or route, which changes no egress: with 255 routers there are many."""
        if isinstance(event, netlink.RouteGone):
            return True
        return isinstance(event, ADDRESS_EVENTS) and event.address.address in self._virtual_addresses

    def follow_links(self) -> None:
        """Find where each router can send from now."""
        keys = {router.egress_key for router in self.routers.values()}
        found = {key: self.links.egress(*key, self._virtual_addresses) for key in keys}
        for router in self.routers.values():
            self._lose_egress(router, found[router.egress_key])
        if self._retry:
            self._retry.cancel()
        self._retry = None if self.transport.follow() else self.loop.after(SOCKET_RETRY, self.follow_links)
        for router in self.routers.values():
            self._use_egress(router, found[router.egress_key])
        for result in self.results.of_interfaces(self.settings.checks, self.links):
            self.take_result(result)

    def report(self) -> Dict[str, Any]:
        """Return the report on instances, groups and checks."""
        routers, groups, now = self.routers, self.notices.groups, self.loop.now()
        return report.build(self.settings, routers, groups, self.results, self.links, now)
