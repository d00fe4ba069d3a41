# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The program that a member runs when no run has confirmed its new settings: it returns to those of before.

It logs to the journal what it does and why. `undoing` decides, and `restoring` acts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, List, Optional, Tuple

from ..._agent.runtime.sd_notify import Notifier
from ..._shared.vrrp_routers import LinkView
from ..firewall.system import Host
from ..link import neighbours, sniffer
from . import arming, changes, records, restoring, snapshot, store, undoing
from .snapshot import ROUTERS, Instance, Snapshot

LISTENS_S = 1.5  # for Advertisements, at least
ANSWERS_S = 0.3
COMMAND_S = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    """What `firewall.system` needs of an AnsibleModule."""

    def __init__(self) -> None:
        self.run_command_environ_update = {"LC_ALL": "C"}
        self.tmpdir = tempfile.gettempdir()

    def run_command(self, arguments: List[str], data: Optional[str] = None) -> Tuple[int, str, str]:
        environment = {**os.environ, "PATH": PATH, **self.run_command_environ_update}
        try:
            done = subprocess.run(
                arguments,
                input=data or "",
                capture_output=True,
                text=True,
                env=environment,
                timeout=COMMAND_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, "", str(error)
        return done.returncode, done.stdout, done.stderr

    def get_bin_path(self, name: str) -> Optional[str]:
        return shutil.which(name, path=PATH)

    def atomic_move(self, source: str, destination: str) -> None:
        shutil.copymode(destination if os.path.exists(destination) else source, source)
        shutil.copyfile(source, f"{destination}.new")
        shutil.copymode(source, f"{destination}.new")
        os.rename(f"{destination}.new", destination)
        os.unlink(source)


def look(instances: List[Instance]) -> undoing.Seen:
    """Look at the links of these instances once.

    :raises OSError, sniffer.CannotListen: if that is impossible
    """
    links, view = undoing.links(instances), LinkView()
    seconds = max([LISTENS_S, *(1.5 * each["advert_interval"] for each in instances)])
    for observation in sniffer.listen(list(links), seconds):
        if not observation.own:
            view.add(observation)
    heard = [router for router in view.result(with_auth_pass=True)["routers"] if router["priority"]]
    return undoing.Seen(heard, neighbours.holders_on_link(links, ANSWERS_S))


def _say(text: str) -> None:
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
        say: Callable[[str], None] = _say,
    ) -> None:
        self.due, self.then, self.machine, self.run = due, then, machine, machine.run_command
        self._looks, self._say = looks, say
        self.ends = False  # set by a signal

    def go(self, ready: Callable[[], None]) -> bool:
        """Return to the old state; False if that was ended while the router waited.

        :param ready: called as soon as a boot may go on
        """
        booted = self.due.boot != arming.boot_id()
        waits = undoing.waits(self.due.role, booted)
        self._say(f"No run has confirmed its change, so this member returns to what it ran before {self.due.id}.")
        if waits:
            self._say("Its router stops until the link shows that no other one disagrees with the old settings.")
            arming.block(self.run)
            self._commands([["systemctl", "stop", name] for name in self._active_routers()])
        now, changed = self._files()
        ready()
        self._commands(changes.of_units(now, self.then, changed))
        self._firewall()
        if waits:
            if not self._wait():
                return False
            now, changed = self._files()  # a run that went on too late may have written more
            arming.unblock(self.run)
        self._commands(changes.of_routers(now, self.then, changed))
        self._say("This member runs again what it ran before.")
        return True

    def _active_routers(self) -> List[str]:
        units = snapshot.take(self.run, {}, [], []).units
        return [name for name in ROUTERS if name in units and units[name].active]

    def _files(self) -> Tuple[Snapshot, List[str]]:
        now = snapshot.take(self.run, self.then.configs, [], [])
        self._commands(changes.before_files(now, self.then))
        changed = restoring.files(now, self.then)
        if changed:
            self._say(f"Restored {', '.join(changed)}.")
        return now, changed

    def _firewall(self) -> None:
        try:
            restoring.openings(Host(self.machine), self.then)
        except restoring.Failed as failed:
            self._say(f"The firewall stays as it is: {failed}")

    def _wait(self) -> bool:
        """Wait until the router may start."""
        trusts_from = time.monotonic() + undoing.first_is_over(self.due.after)
        patience, said = undoing.Patience(self.then.instances, self.due.settle, trusts_from), ""
        while self.then.has_router and not self.ends:
            try:
                hindrance = patience.hindrance(self._looks(self.then.instances), time.monotonic())
            except (OSError, sniffer.CannotListen) as error:
                hindrance = f"the link cannot be watched: {error}"
                time.sleep(LISTENS_S)  # a look that succeeds takes as long
            if not hindrance:
                return True
            if hindrance != said:
                self._say(f"The router stays stopped: {hindrance}.")
                said = hindrance
        return not self.ends

    def _commands(self, todo: List[List[str]]) -> None:
        for failure in restoring.commands(self.run, todo, self._say):
            self._say(failure)


def main() -> int:
    found = records.due()
    if not found:
        return 0
    notifier, machine = Notifier(), Machine()
    try:
        then = store.load(found["id"]).saved
    except store.Refused as refused:
        _say(f"This member stays as it is. {refused}")
        notifier.ready()
        arming.clear(machine.run_command)
        return 1
    undo = Undo(arming.Due(**found), then, machine)
    signal.signal(signal.SIGTERM, lambda *_: setattr(undo, "ends", True))
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    records.write(records.RETURNED, {"run": found["run"], "id": found["id"], "at": at})
    if undo.go(notifier.ready):
        arming.clear(machine.run_command)
    return 0
