# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the log and the notify programs are told of the routers and their sync groups."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from . import settings
from .core import effects, machine
from .router import Router

# The state names that keepalived passes to notify programs, so that its programs work here.
NOTIFY_STATES = {machine.ACTIVE: "MASTER", machine.BACKUP: "BACKUP", machine.FAULT: "FAULT", machine.INITIALIZE: "STOP"}


class Notices:
    """Logs each change, and runs the notify program of what has changed."""

    def __init__(self, checks: Any, log: Any) -> None:
        self.checks, self.log = checks, log
        self.groups: Dict[str, str] = {}  # the state that was last reported of each sync group
        self._user = ""

    def apply(self, new: settings.Settings) -> None:
        self._user = new.script_user
        self.groups = {each.name: self.groups.get(each.name, machine.INITIALIZE) for each in new.groups}

    def state_changed(self, router: Router, change: effects.StateChanged) -> None:
        router.changed(change.reason)
        self.log.info(f"{router.name}: {change.before} to {change.after}: {change.reason}")
        self._notify(router.instance.notify, "INSTANCE", router.name, NOTIFY_STATES[change.after], router.priority)

    def group_changed(self, group: settings.Group, members: Sequence[Router]) -> None:
        """Report a sync group once all its members have reached another state."""
        states = {member.state.name for member in members}
        if len(states) != 1 or states == {self.groups[group.name]}:
            return
        (state,) = states
        self.groups[group.name] = state
        self.log.info(f"{group.name}: the sync group is {state}")
        self._notify(group.notify, "GROUP", group.name, NOTIFY_STATES[state], 0)

    def _notify(self, program: Sequence[str], kind: str, name: str, state: str, priority: int) -> None:
        if program:
            self.checks.run((*program, kind, name, state, str(priority)), self._user)
