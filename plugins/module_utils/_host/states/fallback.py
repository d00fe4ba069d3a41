# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The program that runs while a switchover holds a member back: it starts the router once nobody holds one of its VIPs.

It logs to the journal what it does and why. There is none during a maintenance: somebody works on that member, and no
host can tell that from a controller that has died.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._shared.held_back import PATHS, SWITCHOVER
from .. import records
from ..link import sniffer
from ..read import held_back
from ..read.reader import Reader
from . import snapshot, undo, undoing
from .snapshot import ROUTERS, Instance, Snapshot

STOPS_S = 60.0  # within which the switchover has stopped the router, or has failed
WAITS_S = 1.5  # between two looks at a host on which the link is not looked at


class Silence:
    """Says from one look at the link to the next whether nobody has held a VIP for longer than any router waits."""

    def __init__(self) -> None:
        self._silent: Dict[Tuple[str, ...], float] = {}  # for how many seconds, by the VIPs of an instance

    def hindrance(self, instances: Sequence[Instance], seen: undoing.Seen, listened: float) -> str:
        """Return why the router may not start yet; '' if it may, because nobody holds the VIPs of one of its instances.

        :param listened: for how many seconds; time in which nobody has listened is no silence
        """
        if not instances:
            return "its configuration names no VIP"
        alive = {each["interface"] for each in instances if _occupied(each, seen)}
        found = [self._of(each, seen, alive, listened) for each in instances]
        return "" if "" in found else found[0]

    def _of(self, instance: Instance, seen: undoing.Seen, alive: Collection[str], listened: float) -> str:
        vips, occupied = tuple(undoing.vips_of(instance)), _occupied(instance, seen)
        if occupied:
            self._silent.pop(vips, None)
            return occupied
        if alive and instance["interface"] not in alive:
            self._silent.pop(vips, None)
            return f"{instance['interface']} alone is silent, so this host itself may be cut off"
        self._silent[vips] = self._silent.get(vips, 0.0) + listened
        wanted = 2 * undoing.settle([instance])
        is_long = self._silent[vips] >= wanted
        return "" if is_long else f"{', '.join(vips)} had a holder less than {wanted:.0f} s ago"

    def interrupt(self) -> None:
        """Begin anew, because nobody has listened."""
        self._silent.clear()


def _occupied(instance: Instance, seen: undoing.Seen) -> str:
    """Return who holds the VIPs of an instance, or is Active in its Virtual Router with others; '' if nobody is.

    Beside such a router this one would become Active, or take its place: either way VIPs would be lost that it serves.
    """
    holders, vips = undoing.holders_of(instance, seen), undoing.vips_of(instance)
    if holders:
        return f"{', '.join(vips)} is held by {holders[0]}"
    virtual_router = (instance["interface"], 6 if any(":" in vip for vip in vips) else 4, instance["vrid"])
    others = [each for each in seen.heard if (each["interface"], each["family"], each["vrid"]) == virtual_router]
    return f"VRID {instance['vrid']} is used by {others[0]['source']}, with other VIPs" if others else ""


def look(instances: List[Instance]) -> undoing.Seen:
    """Look at the links of these instances once.

    Those of their VIPs tell who holds them. That of VRRP may be a cable, whose carrier ends with the other host.

    :raises OSError, sniffer.CannotListen: if that is impossible
    """
    for interface in undoing.links(instances):
        if not sniffer.has_carrier(interface):
            raise sniffer.CannotListen(f"Interface {interface} is down.")
    return undo.look(instances)


class Fallback:
    """The wait of one member."""

    def __init__(
        self,
        machine: Any,
        configs: Mapping[str, str],
        looks: Callable[[List[Instance]], undoing.Seen] = look,
        say: Callable[[str], None] = undo.say,
    ) -> None:
        self._run, self._configs, self._looks, self._say = machine.run_command, dict(configs), looks, say
        self._reader = Reader(machine.run_command, machine.get_bin_path)
        self._silence = Silence()
        self._held_back: Optional[List[Instance]] = None  # its instances, as the switchover left them
        self._said = ""
        self.ends = False  # set by a signal

    def go(self) -> None:
        """Wait until the router runs again, whoever has started it, or the switchover holds it back no longer."""
        began, was_stopped = time.monotonic(), False
        while not self.ends:
            now = snapshot.take(self._run, self._configs, [], [])
            if now.has_router and (was_stopped or time.monotonic() >= began + STOPS_S):
                return
            if not now.has_router:
                was_stopped = True
                if held_back.in_force(self._reader).get("during") != SWITCHOVER or self._starts(now):
                    return
            else:
                time.sleep(WAITS_S)

    def _starts(self, now: Snapshot) -> bool:
        """Look once; return whether the router was started."""
        hindrance = self._hindrance(now)
        if hindrance != self._said:
            self._say(f"The router stays stopped: {hindrance}." if hindrance else "Nobody holds its VIPs: it starts.")
            self._said = hindrance
        if hindrance:
            return False
        failed = [each for each in _chosen(now) if self._run(["systemctl", "start", each])[0]]
        if failed:
            self._say(f"{', '.join(failed)} does not start.")
            self._silence.interrupt()
            return False
        records.forget(PATHS[SWITCHOVER])
        return True

    def _hindrance(self, now: Snapshot) -> str:
        """Return why the router may not start yet."""
        reason = self._changing(now) or ("" if _chosen(now) else "it is disabled")
        if not reason:
            try:
                began, seen = time.monotonic(), self._looks(now.instances)
                listened = min(time.monotonic() - began, undo.listens_for(now.instances))
                return self._silence.hindrance(now.instances, seen, listened)
            except (OSError, sniffer.CannotListen) as error:
                reason = f"the link cannot be watched: {str(error).rstrip('.')}"
        self._silence.interrupt()
        time.sleep(WAITS_S)
        return reason

    def _changing(self, now: Snapshot) -> str:
        """Return what shows that the others may have other settings by now; '' if nothing does.

        A run without an undo leaves no other trace on this host.
        """
        if records.is_armed():
            self._held_back = None  # what this leaves counts from then on
            return "a run changes this member, or it returns to its previous settings"
        self._held_back = now.instances if self._held_back is None else self._held_back
        if now.instances == self._held_back:
            return ""
        return "a run has changed its settings since, so it is for onprem.lb.site to start it"


def _chosen(now: Snapshot) -> List[str]:
    """Return the routers that start at boot."""
    return [name for name in ROUTERS if name in now.units and now.units[name].enabled]


def main() -> int:
    fallback = Fallback(undo.Machine(), json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: setattr(fallback, "ends", True))
    fallback.go()
    return 0
