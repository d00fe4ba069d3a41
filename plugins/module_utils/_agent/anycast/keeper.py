# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the VIPs on their interface as the gate decides: an address goes before anything else is done."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ..checks.checks_process import Result
from ..checks.outcome import in_words
from ..checks.results import CheckResults, report
from ..net import netlink
from ..net.addresses import Addresses
from ..net.links import Links
from ..runtime.loop import MILLION, Earliest, Loop
from . import gate, remembered
from .held_back import HeldBack
from .settings import Settings, Vip

RETRY = MILLION  # before what the kernel refused is tried again
BATCHES = 16  # of events that are read at once
OTHERS = "another program had {} it"
FINE = "all checks succeed"


class Dependencies(NamedTuple):
    """Everything that the keeper uses."""

    loop: Loop
    kernel: Any  # net.netlink.Netlink
    checks: Any  # checks.client.Checks
    log: Any  # log.Log
    wall: Callable[[], float] = time.time  # seconds since 1970


class State(NamedTuple):
    """What became of a VIP."""

    held: bool
    since: float
    decision: gate.Decision


class Keeper:
    """The VIPs of this host."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.loop, self.kernel, self.checks, self.log, self.wall = dependencies
        self.settings = Settings(())
        self.links = Links()
        self.results = CheckResults(self.wall)
        self.held_back = HeldBack(self.loop, self.update)
        self.states: Dict[str, State] = {}
        self.restored = 0  # how often the work of another program was undone
        self._addresses = Addresses(self.kernel, self.links, self.log)
        self._elsewhere: Dict[str, List[str]] = {}
        self._retry = Earliest(self.loop, self.update)

    def start(self, settings: Settings) -> None:
        self.loop.watch(self.kernel.fileno(), self._take_events)
        self._addresses.learn()
        self.settings = remembered.load(settings)
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Switch to other settings. Of VIPs that stay nothing changes; those that do not go."""
        before, self.settings = self.settings, settings
        self.held_back.use(settings.held_back)
        stays = settings.interface == before.interface
        if not stays:
            self._move(before)
        kept = {vip.ip for vip in settings.vips} if stays else set()
        self._remove([vip for vip in before.vips if vip.ip not in kept], before.interface)
        self.results.keep(check for check in settings.checks if check in before.checks)
        self.states = {vip.name: self.states[vip.name] for vip in settings.vips if vip.name in self.states}
        self.checks.apply(settings.checks, settings.script_user)
        self._take_links()
        self.update()
        self._remember()

    def _move(self, before: Settings) -> None:
        """Put on the new interface what the one of before has, so that it is announced all the time."""
        old, new = self.links.named(before.interface), self.links.named(self.settings.interface)
        had = {vip.ip for vip in before.vips}
        for vip in self.settings.vips:
            if old and new and vip.ip in had and self._has(old, vip):
                self._addresses.put(vip.name, new, vip.address)

    def _remember(self) -> None:
        try:
            remembered.save(self.settings)
        except OSError as error:
            self.log.fault("remember", f"Which VIPs there are cannot be noted: {in_words(error)}.")
        else:
            self.log.cured("remember", "Which VIPs there are is noted again.")

    def take_result(self, result: Result) -> None:
        """Apply the result of a check."""
        if any(check.name == result.name for check in self.settings.checks):
            self.results.record(result)
            self.update()

    def update(self, by_others: bool = False) -> None:
        """Put the VIPs on the interface, or take them off it, as far as that is known.

        :param by_others: whether another program may have changed something
        """
        link = self.links.named(self.settings.interface)
        results, record = {name: state.result for name, state in self.results.items()}, self.held_back.record
        decisions = [(vip, gate.decide(vip, results, record)) for vip in self.settings.vips]
        if link:
            self._change(link, decisions, by_others)
        self._note(decisions, link)

    def _change(self, link: netlink.Link, decisions: Any, by_others: bool) -> None:
        present = {vip.name: self.links.present(link.index, [vip.ip]) for vip, _decision in decisions}
        todo = gate.changes(decisions, present, [vip.address for vip, _each in decisions if self._has(link, vip)])
        for vip, addresses in todo.remove:
            self._addresses.remove(vip.name, link, addresses)
        done = [self._addresses.put(vip.name, link, vip.address) for vip in todo.add]
        for vip, strays in todo.strays:
            self._addresses.delete_all(vip.name, link, strays, OTHERS.format("added"))
        left = any(self.links.present(link.index, [vip.ip]) for vip, _addresses in todo.remove)
        if left or not all(done):
            self._retry.after(RETRY)
        if by_others:
            self._blame([vip for vip, _addresses in todo.remove], "added", False)
            self._blame(todo.add, "removed", True)

    def _has(self, link: netlink.Link, vip: Vip) -> bool:
        """Whether an interface has a VIP; one that is down cannot have an IPv6 address that is usable."""
        if link.up:
            return self.links.usable(link.index, vip.address)
        return vip.address in self.links.present(link.index, [vip.ip])

    def _blame(self, vips: List[Vip], what: str, was_held: bool) -> None:
        """Say that another program has changed what was as it should be."""
        for vip in vips:
            if vip.name in self.states and self.states[vip.name].held is was_held:
                self.restored += 1
                self.log.warning(f"{vip.name}: {vip.address} is as it was: {OTHERS.format(what)}")

    def _note(self, decisions: Any, link: Optional[netlink.Link]) -> None:
        """Remember and log what has become of the VIPs. Nothing waits for this."""
        missing = f"interface {self.settings.interface} is not there"
        if link:
            self.log.cured("interface", f"interface {self.settings.interface} is there")
        else:
            self.log.fault("interface", missing)
        for vip, decision in decisions:
            held = bool(link and self._has(link, vip))
            before = self.states.get(vip.name)
            if not before or before.held is not held:
                where = f"is on {self.settings.interface}" if held else f"is not on {self.settings.interface}"
                self.log.info(f"{vip.name}: {vip.address} {where}: {decision.detail or FINE}")
            elif before.decision.reason != decision.reason:
                self.log.info(f"{vip.name}: {vip.address} stays as it is: {decision.detail or FINE}")
            same = before and before.held is held
            self.states[vip.name] = State(held, before.since if before and same else self.wall(), decision)
            self._note_elsewhere(vip, link)

    def _note_elsewhere(self, vip: Vip, link: Optional[netlink.Link]) -> None:
        others = [name for name in self.links.carrying(vip.ip) if not link or name != link.name]
        if others and self._elsewhere.get(vip.name) != others:
            self.log.warning(f"{vip.name}: {vip.ip} is on {', '.join(others)} as well")
        self._elsewhere[vip.name] = others

    def _take_events(self, _events: int) -> None:
        """Process changes of links and addresses."""
        received: List[netlink.Event] = []
        for _batch in range(BATCHES):  # what this daemon has done itself, with all that follows from it
            more = self.kernel.events()
            received += more
            if not more:
                break
        if any(isinstance(event, netlink.Lost) for event in received):
            self._addresses.learn()
        for event in received:
            self.links.update(event)
        self._take_links()
        self.update(by_others=True)

    def _take_links(self) -> None:
        """Check interfaces here, where their changes are known."""
        for result in self.results.of_interfaces(self.settings.checks, self.links):
            self.results.record(result)

    def give_up(self) -> None:
        """Take all VIPs off the interface, for good."""
        self._remove(self.settings.vips, self.settings.interface)
        self.loop.forget(self.kernel.fileno())
        self.held_back.use(())
        self._retry.cancel()

    def _remove(self, vips: Any, interface: str) -> None:
        link = self.links.named(interface)
        if not link:
            return
        for vip in vips:
            self._addresses.remove(vip.name, link, self.links.present(link.index, [vip.ip]))

    def held(self) -> List[str]:
        """Return the VIPs that are on the interface."""
        link = self.links.named(self.settings.interface)
        return self.links.present(link.index, [vip.ip for vip in self.settings.vips]) if link else []

    def report(self) -> Dict[str, Any]:
        link = self.links.named(self.settings.interface)
        return {
            "interface": self.settings.interface,
            "interface_up": bool(link and link.up),
            "held_back": self.held_back.record.text or None,
            "restored": self.restored,
            "vips": [self._report(vip, self.states[vip.name]) for vip in self.settings.vips],
            "checks": report(self.settings.checks, self.results),
        }

    def _report(self, vip: Vip, state: State) -> Dict[str, Any]:
        wanted, reason, detail = state.decision
        return {
            "name": vip.name,
            "address": vip.address,
            "held": state.held,
            "since": state.since,
            "wanted": wanted,
            "reason": reason,
            "detail": detail,
            "track": list(vip.track),
            "elsewhere": self._elsewhere.get(vip.name, []),
        }
