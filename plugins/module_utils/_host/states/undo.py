# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The program that a member runs when no run has confirmed its new settings: it returns to those of before.

It logs to the journal what it does and why. `undoing` decides, and `restoring` acts.
"""

from __future__ import annotations

import signal
import sys
import time
from types import MappingProxyType
from typing import Any, Callable, Collection, List, Mapping, Optional, Set, Tuple, Union

from ..._agent.metrics.sessions import ESTABLISHED
from ..._agent.net.netlink import Netlink
from ..._agent.runtime.sd_notify import Notifier
from ..._shared import paths
from ..._shared.vrrp_routers import LinkView
from .. import records
from ..firewall.system import Host
from ..link import neighbours, sniffer
from ..read import bgp
from ..read.reader import Reader
from . import (
    arming,
    changes,
    fallback_unit,
    keeping,
    meanwhile,
    restoring,
    serving,
    snapshot,
    store,
    undoing,
)
from .machine import Machine
from .snapshot import ROUTERS, Instance, Snapshot

LISTENS_S = 1.5  # for Advertisements, at least
TRIES_S = 3.0  # for how long a link that cannot be watched is tried again, before the router is left alone
ANSWERS_S = 0.3
PAUSE_S = 0.5  # between two looks at what this member announces
SITE_MENDS = "The next run of onprem.lb.site repairs that."


def listens_for(instances: List[Instance]) -> float:
    """Return for how many seconds a look listens."""
    return max([LISTENS_S, *(1.5 * each["advert_interval"] for each in instances)])


def look(instances: List[Instance]) -> undoing.Seen:
    """Look at the links of these instances once.

    :raises OSError, sniffer.CannotListen: if that is impossible
    """
    links, view = undoing.links(instances), LinkView()
    for observation in sniffer.listen(undoing.interfaces(instances), listens_for(instances)):
        view.add(observation)
    active = [router for router in view.result(with_auth_pass=True)["routers"] if router["priority"]]
    heard, own = [each for each in active if not each["own"]], [each for each in active if each["own"]]
    serves = bool(own) or not addresses().isdisjoint(vip for vips in links.values() for vip in vips)
    return undoing.Seen(heard, neighbours.holders_on_link(links, ANSWERS_S), serves)


def addresses(of_loopback: bool = False) -> Set[str]:
    """Return the addresses of this host, but for those of the loopback interface, or these alone.

    Direct return, and what announces VIPs by BGP, have them there.
    """
    netlink = Netlink()
    try:
        loopback = {link.index for link in netlink.links() if link.name == "lo"}
        return {each.address for each in netlink.addresses() if (each.index in loopback) is of_loopback}
    finally:
        netlink.close()


def see(now: Snapshot, reader: Reader) -> serving.Seen:
    """Read what this member serves by BGP, as far as it says that."""
    try:
        on_lo: Optional[Set[str]] = addresses(of_loopback=True)
    except OSError:
        on_lo = None
    try:
        sessions = bgp.sessions(reader)
        return serving.Seen(
            on_lo,
            {each.peer for each in sessions if each.state == ESTABLISHED},
            bgp.running_config(reader),
        )
    except bgp.NoAnswer:
        return serving.Seen(on_lo, [] if serving.is_without_frr(now) else None)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Undo:
    """One return of one member."""

    def __init__(
        self,
        due: arming.Due,
        then: Snapshot,
        machine: Any,
        looks: Callable[[List[Instance]], undoing.Seen] = look,
        say: Callable[[str], None] = say,
        written: Mapping[str, Collection[str]] = MappingProxyType({}),
        note: Callable[..., None] = lambda **_known: None,
        sees: Callable[[Snapshot, Reader], serving.Seen] = see,
    ) -> None:
        """
        :param looks: at the link
        :param sees: what this member announces by BGP
        :param written: the checksums of what runs have written to each path since the undo was armed
        :param note: records what the router waits for, and why it stays, for who asks this member meanwhile
        """
        self.due, self.then, self.machine, self.run = due, then, machine, machine.run_command
        self._looks, self._say, self._written, self._note = looks, say, written, note
        self._sees = lambda: sees(self._now(), Reader(machine.run_command, machine.get_bin_path))
        self._routers: List[str] = []  # those that run when it begins
        self._serves_nobody = False
        self._ready: Callable[[], None] = lambda: None
        self.stays = ""  # why the router stays as it is, or what was kept
        self.kept = ""
        self.others = ""  # the files that stay, because somebody else has changed them
        self.ends = False  # set by a signal

    def go(self, ready: Callable[[], None]) -> bool:
        """Return to the old state; False if that was ended while the router waited.

        :param ready: called as soon as a boot may go on
        """
        self._ready = ready
        self._say(f"No run has confirmed its change, so this member returns to what it ran before {self.due.id}.")
        now = self._now()
        self._routers = keeping.runs_router(now)
        self._spare_others(now)
        if serving.concerns(now, self.then):
            self._return_announcing(now)
        elif not self._return_on_the_link(now):
            return False
        for failure in fallback_unit.begin(self.run, self.then.configs):
            self._say(failure)
        if not self.stays:
            self._say(f"This member runs again what it ran before{f', but for {self.others}' if self.others else ''}.")
        return True

    def _return_on_the_link(self, now: Snapshot) -> bool:
        """Return with a router of VRRP; False if that was ended while it waited."""
        waits = undoing.waits(self.due.role, self.due.boot != arming.boot_id())
        self.stays = self.stays or self._reason_to_stay(now, waits)
        if self.stays:
            self._keep_router(now)
        elif waits:
            if not self._stop_and_wait(now):
                return False
        else:
            *before, last = meanwhile.steps(now, self.then)
            for step in before:
                self._commands(self._restore(step, adds=True))
            self._commands(self._restore(last))
        return True

    def _return_announcing(self, now: Snapshot) -> None:
        """Return where VIPs are announced by BGP: to what serves, or forth again to what has served."""
        seen = self._sees()
        self.stays = self.stays or serving.reason_to_stay(now, self.then, seen)
        if self.stays:
            self.kept = records.WHOLE
            self._say(f"It stays as it is: {self.stays}. {SITE_MENDS}")
            self._ready()
            return
        self.stays = serving.reason_of_frr(now, self.then, seen)
        if self.stays:
            self.kept = "FRR"
            self._say(f"FRR stays as it is: {self.stays}. {SITE_MENDS}")
            self.then = keeping.with_files(now, self.then, paths.FRR_FILES)
        for step in meanwhile.steps(now, self.then):
            self._commands(self._restore(step, adds=True))
        lost = self._lost(serving.of_both(serving.served(now, seen), self.then))
        if lost:
            self.kept = records.WHOLE
            self.stays = f"with the settings of before it did not serve {', '.join(lost)}"
            self._say(f"It goes forth again: {self.stays}. {SITE_MENDS}")
            self._commands(self._restore(now, adds=True))
        elif not self.stays:
            self._firewall(adds=False)

    def _lost(self, vips: List[str]) -> List[str]:
        """Return which of these VIPs this member serves no longer, once it has had the time to notice."""
        until = time.monotonic() + serving.proof_s(self.due.settle)
        while vips and not self.ends:
            lost = serving.lost(vips, self._sees())
            if time.monotonic() >= until:
                return lost
            time.sleep(PAUSE_S)
        return []

    def _now(self) -> Snapshot:
        return snapshot.take(self.run, self.then.configs, [], [])

    def _spare_others(self, now: Snapshot) -> None:
        """Leave what somebody else has changed since."""
        others = keeping.of_others(now, self.then, self._written)
        self.others = ", ".join(others)
        if others:
            self._say(f"Somebody else has changed {self.others} since, so it stays.")
        self.then = keeping.with_files(now, self.then, others)
        if any(keeping.is_of_router(path, now.configs) for path in others):
            self.stays = "somebody else has changed its configuration since"

    def _reason_to_stay(self, now: Snapshot, waits: bool) -> str:
        """Return why the router must not stop, or load other settings; '' if it may."""
        if self.due.role == undoing.FIRST and not waits and self.then.has_router:
            return self._disagreement()
        if not self._routers or (not waits and self.then.has_router):
            return ""
        if not now.instances:
            return "its configuration names no VIP that another member could be heard advertising"
        if waits and self.due.first:
            return self._reason_not_to_stop(now.instances)
        seen = self._look(now.instances)
        if isinstance(seen, str):
            return seen
        alone = undoing.unserved(now.instances, seen)
        return f"no other member advertises {', '.join(alone)}" if alone else ""

    def _reason_not_to_stop(self, instances: List[Instance]) -> str:
        began = time.monotonic()
        while True:
            seen = self._look(instances)
            if isinstance(seen, str):
                return seen
            reason = undoing.reason_not_to_stop(self.due.first, instances, seen, time.monotonic() - began)
            is_unheard = not undoing.hears_first(self.due.first, instances, seen)
            if is_unheard and not reason and not self.then.has_router:
                return "no other member is heard, and once stopped it would not start again"
            if reason is not None:
                self._serves_nobody = is_unheard
                return reason

    def _disagreement(self) -> str:
        seen = self._look(self.then.instances)
        if isinstance(seen, str):
            return seen
        others = undoing.disagreeing(self.then.instances, seen)
        return f"{others[0]} advertises the VIPs with other settings than the old ones" if others else ""

    def _look(self, instances: List[Instance]) -> Union[undoing.Seen, str]:
        """Look at the link; return why that is impossible, if it stays so for a while."""
        until = time.monotonic() + TRIES_S
        while True:
            try:
                return self._looks(instances)
            except (OSError, sniffer.CannotListen) as error:
                if time.monotonic() >= until:
                    return f"the link cannot be watched: {error}"
                time.sleep(LISTENS_S)  # a look that succeeds takes as long

    def _keep_router(self, now: Snapshot) -> None:
        """Return everything but the router."""
        self._say(f"The router stays as it is: {self.stays}. {SITE_MENDS}")
        rest = keeping.with_router(now, self.then)
        self._restore(rest, adds=True)
        whole = "So does everything else, because the router checks something else than before."
        self._say(whole if rest.files == now.files else "Everything else is as it was before.")

    def _restore(self, then: Snapshot, adds: bool = False) -> List[List[str]]:
        """Return to a state; return the commands for the routers.

        :param adds: the firewall is opened as it was then, and closed nowhere
        """
        now, changed = self._files(then)
        self._ready()
        self._commands(changes.of_units(now, then, changed))
        self._firewall(adds)
        return changes.of_routers(now, then, changed)

    def _stop_and_wait(self, now: Snapshot) -> bool:
        """Stop the router until it may start with the old settings, or has to go on with the present ones."""
        self._say("Its router stops until the link shows that no other one disagrees with the old settings.")
        arming.block(self.run)
        self._commands([["systemctl", "stop", name] for name in self._routers])
        stopped_at = time.monotonic() if self._routers else None
        self._restore(keeping.with_router(self._now(), self.then), adds=True)
        if not self._wait(now, stopped_at):
            return False
        if self.stays:
            self._say(f"The router keeps running as before: {self.stays}. {SITE_MENDS}")
            routers = [["systemctl", "start", name] for name in self._routers or self._chosen()]
        else:
            routers = self._restore(self.then)  # a run that went on too late may have written more
        arming.unblock(self.run)
        self._commands(routers)
        return True

    def _chosen(self) -> List[str]:
        """Return the routers that start at boot."""
        units = self._now().units
        return [name for name in ROUTERS if name in units and units[name].enabled]

    def _files(self, then: Snapshot) -> Tuple[Snapshot, List[str]]:
        now = self._now()
        self._commands(changes.before_files(now, then))
        records.note_written({file.path: file.content for file in changes.of_files(now, then).write})
        changed = restoring.files(now, then)
        if changed:
            self._say(f"Restored {', '.join(changed)}.")
        return now, changed

    def _firewall(self, adds: bool) -> None:
        host, then = Host(self.machine), self.then
        try:
            if adds:
                then = then._replace(openings=[*then.openings, *restoring.current_openings(host)])
            restoring.openings(host, then)
        except restoring.Failed as failed:
            self._say(f"The firewall stays as it is: {failed}")

    def _wait(self, now: Snapshot, stopped_at: Optional[float]) -> bool:
        """Wait until the router may start; `stays` says if that is with its present settings."""
        began, after, settle = time.monotonic(), self.due.after, self.due.settle
        trusts_from = began + undoing.first_is_over(after, settle)
        stays_from = began + undoing.first_stays(after, settle)
        then, said = self.then.instances, ""
        patience = undoing.Patience(
            then, settle, now.instances, stopped_at, trusts_from, stays_from, served=not self._serves_nobody
        )
        while (self.then.has_router or self._routers) and not self.ends:
            try:
                seen, at = self._looks(then or now.instances), time.monotonic()
            except (OSError, sniffer.CannotListen) as error:
                hindrance = f"the link cannot be watched: {error}"
                time.sleep(LISTENS_S)
            else:
                hindrance = patience.hindrance(seen, at) if self.then.has_router else _untaken(patience, seen)
                self.stays = patience.reason_to_stay(seen, at) if hindrance else ""
            if not hindrance or self.stays:
                return True
            if hindrance != said:
                self._say(f"The router stays stopped: {hindrance}.")
                self._note(waits=hindrance)
                said = hindrance
        return not self.ends

    def _commands(self, todo: List[List[str]]) -> None:
        for failure in restoring.commands(self.run, todo, self._say):
            self._say(failure)


def _untaken(patience: undoing.Patience, seen: undoing.Seen) -> str:
    untaken = patience.untaken(seen)
    return f"nobody has taken {', '.join(untaken)} yet" if untaken else ""


def main() -> int:
    notifier, machine = Notifier(), Machine()
    try:
        found = records.due()
        if not found:
            return 0
        due, written = arming.Due(**found), records.read(records.WRITTEN)
        then = store.load(due.id).saved
    except (store.Refused, TypeError, ValueError) as refused:
        say(f"This member stays as it is. {refused}")
        notifier.ready()
        arming.clear(machine.run_command)
        return 1
    returned = {**found, "at": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}

    def note(**known: str) -> None:
        records.write(records.RETURNED, {**returned, **known})

    undo = Undo(due, then, machine, written=written, note=note)
    signal.signal(signal.SIGTERM, lambda *_: setattr(undo, "ends", True))
    note()
    if undo.go(notifier.ready):
        note(stays=undo.stays, kept=undo.kept, others=undo.others)
        arming.clear(machine.run_command)
    return 0
