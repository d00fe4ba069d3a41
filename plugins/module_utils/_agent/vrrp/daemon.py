# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon: gives the state machines a clock and events, and carries out their effects in order.

Everything outside comes in through ``Dependencies``, so that tests can replace it. Nothing here blocks: checks and
notify programs run in a process of their own, and what cannot be sent at once is dropped.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ..checks.client import Result
from ..checks.settings import INTERFACE, Check
from ..net import netlink
from ..runtime.loop import MILLION, Loop, Timer
from . import check_results, links, report, settings
from .addresses import VirtualAddresses
from .core import effects, machine, sync_group, tracking
from .notices import Notices
from .other_holders import OtherHolders
from .prepared import PreparedCalls, PreparedTakeover
from .router import ADDRESSES, Router
from .settings import identity
from .transport import Transport

# How long to wait before addresses that the kernel refused are tried again.
ADDRESS_BACKOFF, ADDRESS_BACKOFF_MAX = 10 * MILLION, 300 * MILLION
PREPARE_AHEAD = 600  # microseconds before Active_Down_Timer expires in which the takeover is prepared
SOCKET_RETRY = 10 * MILLION  # before a socket that could not be opened is tried again
CONFIGURATION_READING = "the configuration"  # updated at a reload, after which other trackers may count
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
        self.results = check_results.CheckResults(self.wall)
        self.links = links.Links()
        self.addresses = VirtualAddresses(self.loop, self.network, self.links, self.log)
        self.other_holders = OtherHolders(
            self.loop, self.network, self.links, self.log, lambda: [*self.routers.values()]
        )
        self.notices = Notices(self.loop, self.links, self.results, self.checks, self.log)
        self.transport = Transport(self.loop, self.network, self.links, self.log, self._receive)
        self._virtual_addresses: Set[str] = set()
        self._retry: Optional[Timer] = None
        self._on_resigned: Optional[Callable[[], None]] = None

    def start(self, new: settings.Settings, later: bool = False) -> None:
        """Start all routers; with ``later`` they do not take part until ``resume``."""
        self.loop.watch(self.network.netlink.fileno(), self._receive_netlink)
        self.links.learn(self.network.netlink.links(), self.network.netlink.addresses())
        self.apply(new, later)
        if later:
            self.transport.discard_pending()

    def to_json(self) -> Dict[str, Any]:
        """Return the state for ``resume`` in another process."""
        return {
            "routers": {name: router.to_json() for name, router in self.routers.items()},
            "checks": self.results.to_json(),
            "groups": self.notices.groups,
        }

    def resume(self, known: Dict[str, Any]) -> None:
        """Go on with another process's state and the same settings: no state changes, and no program is notified.

        :param known: from that process's ``to_json``
        """
        self.notices.groups.update(known["groups"])
        self.results.restore(known["checks"])
        results = [found.result for found in self.results.values()]
        self.checks.apply(self.settings.checks, self.settings.script_user, results)
        for router in self.routers.values():
            router.restore(known["routers"][router.name])
        self._follow_links()
        for router in self.routers.values():
            self._resume_router(router)

    def _resume_router(self, router: Router) -> None:
        self._update_trackers(router)
        self._check_addresses(router)
        if router.active:
            self.addresses.resume(router)
            self.other_holders.expect()
        if router.state.readings.get(ADDRESSES, 0) is tracking.FAULT:
            self.loop.after(router.refused_for, lambda: self._retry_addresses(router))
        self._set_timer(router)

    def resign(self, done: Callable[[], None]) -> None:
        """Resign, but keep the addresses until another router serves them. All resignations are sent first.

        :param done: called when no address is held any more
        """
        self._on_resigned = done
        resignations: PreparedCalls = {}
        for router in self.routers.values():
            calls = self.transport.prepare(router, 0) if router.active else {}
            resignations.update(calls)
            for call in calls.values():
                call.run_early()
        for router in self.routers.values():
            self.step(router, machine.Stop(linger=True), prepared=resignations)
        self._finish_resigning()

    def _finish_resigning(self) -> None:
        if self._on_resigned and not any(router.state.holding for router in self.routers.values()):
            self._on_resigned()

    def stop(self) -> None:
        """Stop all routers at once."""
        for router in self.routers.values():
            self.step(router, machine.Stop())
        self.transport.close()
        self.other_holders.close()

    def held(self) -> List[str]:
        """Return the virtual addresses that are on this host's interfaces."""
        instances = [router.instance for router in self.routers.values()]
        return [found for each in instances for found in self.links.held(each.interface, each.addresses)]

    def apply(self, new: settings.Settings, later: bool = False) -> None:
        """Switch to other settings. Unchanged routers go on; with ``later`` new ones do not start yet."""
        identities = {identity(instance) for instance in new.instances}
        for router in [router for router in self.routers.values() if router.identity not in identities]:
            self.step(router, machine.Stop())
            del self.routers[router.name]
        before, self.settings = self.settings, new
        self.notices.apply(new)
        self._virtual_addresses = {address.partition("/")[0] for each in new.instances for address in each.addresses}
        kept = {router.identity: router for router in self.routers.values()}
        self.routers = {each.name: kept.get(identity(each)) or Router(each, self.wall) for each in new.instances}
        if not later:
            self._apply_checks(before)
        changed = [each for each in new.instances if identity(each) in kept and self._is_changed(each, before)]
        for instance in changed:
            self._reconfigure(self.routers[instance.name], instance)
        self.transport.listen_for(self.routers.values())
        self._follow_links()
        for instance in changed:
            self._resume_reconfigured(self.routers[instance.name])
        for router in [router for router in self.routers.values() if not (later or router.identity in kept)]:
            self._start_router(router)
        for group in new.groups:
            self.notices.group_changed(group, self._members_of(group))

    def _apply_checks(self, before: settings.Settings) -> None:
        """Forget the results of checks that have changed."""
        self.results.keep(check for check in self.settings.checks if check in before.checks)
        self.checks.apply(self.settings.checks, self.settings.script_user)

    def _start_router(self, router: Router) -> None:
        self._update_trackers(router)
        held = self.links.held(router.instance.interface, router.instance.addresses)
        self.step(router, machine.Start(holding=bool(held)))

    def _is_changed(self, new: settings.Instance, before: settings.Settings) -> bool:
        groups = [settings.group_of(each, new.name) for each in (before, self.settings)]
        return new not in before.instances or groups[0] != groups[1]

    def _reconfigure(self, router: Router, new: settings.Instance) -> None:
        """Give a router its new settings, and forget readings that counted only under the old ones."""
        old = router.instance
        if router.active or router.state.holding:
            self.addresses.remove(router, [address for address in old.addresses if address not in new.addresses])
        router.configure(new)
        counting = router.names | {sync_group.GROUP} | ({ADDRESSES} if new.addresses == old.addresses else set())
        readings = {name: reading for name, reading in router.state.readings.items() if name in counting}
        router.state = machine.reconfigured(router.machine, router.state._replace(readings=readings), self.loop.now())

    def _resume_reconfigured(self, router: Router) -> None:
        """Go on with new settings, once every router of its sync group has them."""
        self._update_trackers(router)
        self.step(router, machine.TrackerUpdate(CONFIGURATION_READING, 0))  # may end a wait or a fault
        if router.active:
            self._restore_addresses(router, "new")
            self.addresses.reschedule_announcement(router)

    def _restore_addresses(self, router: Router, why: str) -> None:
        """Put back the addresses that an Active router has lost."""
        missing = self.addresses.missing(router)
        if not missing:
            return
        if not self.addresses.add(router, missing):
            self._addresses_refused(router)
            return
        self.log.warning(f"{router.name}: {', '.join(missing)} put on {router.instance.interface}: {why}")
        self.addresses.announce(router)

    def step(
        self, router: Router, event: machine.Event, when: Optional[int] = None, prepared: Optional[PreparedCalls] = None
    ) -> None:
        """Step a router's state machine with an event, and carry out the effects.

        :param when: the time of the event, if not now
        :param prepared: calls that were prepared for these effects
        """
        members = self._members(router)
        routers, states = [member.machine for member in members], [member.state for member in members]
        after, actions = sync_group.step(routers, states, members.index(router), event, when or self.loop.now())
        for member, state in zip(members, after):
            member.state = state
        refused: Set[int] = set()
        for at, effect in actions:
            if at not in refused and not self._perform(members[at], effect, prepared):
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
            self.notices.lower_received(router, received, arrived)

    def _members(self, router: Router) -> Sequence[Router]:
        """Return the router's sync group; without one, the router alone."""
        group = settings.group_of(self.settings, router.name)
        found = self._members_of(group) if group else []
        return found if router in found else [router]

    def _members_of(self, group: settings.Group) -> Sequence[Router]:
        return [self.routers[name] for name in group.instances if name in self.routers]

    def _group_changed(self, router: Router, actions: sync_group.Effects) -> None:
        """Report the group after all of its members, whose states changed together."""
        if any(isinstance(effect, effects.StateChanged) for _at, effect in actions):
            group = settings.group_of(self.settings, router.name)
            if group:
                self.notices.group_changed(group, self._members_of(group))

    def _set_timer(self, router: Router) -> None:
        """Make the timer fire no later than the deadline; if it fires earlier, it is set again."""
        deadline, timer = router.state.deadline, router.timer
        if timer and (deadline is None or timer.at > deadline):
            timer.cancel()
            router.timer = timer = None
        if deadline is not None and timer is None:
            ahead = PREPARE_AHEAD if router.awaiting_timeout else 0
            router.timer = self.loop.at(deadline - ahead, lambda: self._timer_fired(router))

    def _timer_fired(self, router: Router) -> None:
        router.timer = None
        takeover = self._await_expiry(router) if router.awaiting_timeout else None
        if self._is_expired(router):
            self.step(router, machine.Timeout(), prepared=takeover.calls if takeover else None)
            self._finish_resigning()
        self._set_timer(router)

    def _await_expiry(self, router: Router) -> Optional[PreparedTakeover]:
        """If Active_Down_Timer is about to expire, prepare the takeover, wait, and begin it at once."""
        deadline, takeover = router.state.deadline, None
        if deadline is not None and deadline <= self.loop.now() + PREPARE_AHEAD:
            members = self._members(router)
            takeover = PreparedTakeover(self.transport, self.addresses, members, members.index(router), deadline)
            self.loop.spin_until(deadline)
        if self._is_expired(router):
            self.transport.catch_up(router)  # an Advertisement may have arrived that this process was too late to read
        if takeover:
            takeover.begin()
        return takeover

    def _is_expired(self, router: Router) -> bool:
        return router.state.deadline is not None and self.loop.now() >= router.state.deadline

    def _perform(self, router: Router, effect: effects.Effect, prepared: Optional[PreparedCalls]) -> bool:
        """Carry out an effect; return False if the kernel refused the addresses."""
        if isinstance(effect, effects.Send):
            self.transport.send(router, effect.priority, prepared)
        elif isinstance(effect, effects.AddAddresses):
            added = self.addresses.add(router, router.instance.addresses, prepared)
            router.refused_for = 0 if added else router.refused_for
            self.other_holders.expect()
            return added
        elif isinstance(effect, effects.RemoveAddresses):
            self.addresses.remove(router, router.instance.addresses)
        elif isinstance(effect, effects.Announce):
            self.addresses.announce(router, prepared)
        else:
            self.notices.state_changed(router, effect, self._members(router))
        return True

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

    def _lose_egress(self, router: Router, egress: links.Egress) -> None:
        """Resign through the old egress, as long as anything can still be sent there."""
        usable = egress.up and egress.follows(router.egress)
        for name, good in ((router.link_reading, usable), (router.source_reading, bool(egress.source))):
            if not good:
                self._update_tracker(router, name, good)

    def _use_egress(self, router: Router, egress: links.Egress) -> None:
        """Send from a new egress. A router that cannot send would become Active beside another one."""
        another_mac = egress.has_another_mac(router.egress)
        if egress != router.egress:
            router.move(egress)
        self._update_tracker(router, router.link_reading, egress.up and self.transport.is_open(router))
        self._update_tracker(router, router.source_reading, bool(egress.source))
        if another_mac and router.active:
            self.addresses.announce_mac(router)

    def _update_tracker(self, router: Router, name: str, good: bool) -> None:
        reading = tracking.check(0, good)
        if router.state.readings.get(name, "not read") != reading:
            self.step(router, machine.TrackerUpdate(name, reading))

    def _update_trackers(self, router: Router) -> None:
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
            self._follow_links()
        changed = {event.address.address for event in received if isinstance(event, ADDRESS_EVENTS)}
        for router in self.routers.values():
            if lost or changed.intersection(router.advertisement.addresses):
                self._check_addresses(router)

    def _check_addresses(self, router: Router) -> None:
        """Undo what another program has done to the addresses: they belong to the agent alone."""
        if router.active:
            self._restore_addresses(router, "another program had removed it")
        self.addresses.remove_strays(router)

    def _is_virtual(self, event: Any) -> bool:
        """Whether it is about a virtual address, which does not change an egress: with 255 routers there are many."""
        return isinstance(event, ADDRESS_EVENTS) and event.address.address in self._virtual_addresses

    def _follow_links(self) -> None:
        """Find where each router can send from now."""
        keys = {router.egress_key for router in self.routers.values()}
        found = {key: self.links.egress(*key, self._virtual_addresses) for key in keys}
        for router in self.routers.values():
            self._lose_egress(router, found[router.egress_key])
        if self._retry:
            self._retry.cancel()
        self._retry = None if self.transport.follow() else self.loop.after(SOCKET_RETRY, self._follow_links)
        for router in self.routers.values():
            self._use_egress(router, found[router.egress_key])
        for check in self.settings.checks:
            if check.type == INTERFACE:
                self._check_interface(check)

    def _check_interface(self, check: Check) -> None:
        result, known = check_results.of_interface(check, self.links), self.results.get(check.name)
        if known is None or known.result != result:
            self.take_result(result)

    def report(self) -> Dict[str, Any]:
        """Return the report on instances, groups, checks and sockets."""
        routers, groups, now = self.routers, self.notices.groups, self.loop.now()
        return report.build(self.settings, routers, groups, self.results, self.links, self.transport, now)
