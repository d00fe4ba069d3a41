# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the log and the notify programs are told of the routers and their sync groups."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Union

from ..checks.results import CheckResults
from ..runtime.loop import MILLION, Loop
from . import links, reasons, settings
from .core import effects, machine
from .rivals import Rival
from .router import Router

# The state names that keepalived passes to notify programs, so that its programs work here.
NOTIFY_STATES = {
    machine.ACTIVE: "MASTER",
    machine.BACKUP: "BACKUP",
    machine.FAULT: "FAULT",
    machine.LEAVING: "STOP",
    machine.INITIALIZE: "STOP",
}


REPEAT = MILLION  # between two calls that tell a program of an unchanged state


class Notices:
    """Logs each change, and runs the notify program of what has changed."""

    def __init__(self, loop: Loop, known: links.Links, results: CheckResults, checks: Any, log: Any) -> None:
        self.loop, self.links, self.results, self.checks, self.log = loop, known, results, checks, log
        self.groups: Dict[str, str] = {}  # the state that was last reported of each sync group
        self._user = ""
        self._repeated: Dict[str, bool] = {}  # a router told lately -> whether it is to be told again

    def apply(self, new: settings.Settings) -> None:
        self._user = new.script_user
        self.groups = {each.name: self.groups.get(each.name, machine.INITIALIZE) for each in new.groups}

    def state_changed(self, router: Router, change: effects.StateChanged, members: Sequence[Router]) -> None:
        """
        :param members: of its sync group
        """
        reason = change.reason
        if change.after == machine.FAULT:
            reason = reasons.of_fault(router, members, self.links, self.results)
        router.changed(change.after, reason)
        self.log.info(f"{router.name}: {change.before} to {change.after}: {reason}")
        state = NOTIFY_STATES[change.after]
        if state != NOTIFY_STATES[change.before]:
            self._notify(router.instance, "INSTANCE", state, router.priority)

    def lower_received(
        self, router: Router, group: Optional[settings.Group], received: machine.Received, arrived: int
    ) -> None:
        """Report a router of a lower priority that stays Active beside ours, once until it is gone.

        The notify programs are told again, as keepalived's notify_master_rx_lower_pri is: its own may have been told
        that it owns the addresses, and may act on that at any time until it has yielded.
        """
        router.lower += 1
        if router.name in self._repeated:
            self._repeated[router.name] = True
        else:
            self._tell_again(router, group)
        rival = router.rivals.record(received, arrived, router.wall())
        if rival:
            self.log.fault(
                f"rival {router.name} {rival.source}",
                f"{router.name}: {rival.source} is Active as well, with priority {rival.priority}: "
                "it receives none of our Advertisements, or discards them",
            )
            self._expect_end(router, rival)

    def _tell_again(self, router: Router, group: Optional[settings.Group]) -> None:
        """Tell the programs now, and after REPEAT once more of what has come until then: messages may be forged."""
        self._notify(router.instance, "INSTANCE", NOTIFY_STATES[machine.ACTIVE], router.priority)
        if group:
            self._notify(group, "GROUP", NOTIFY_STATES[machine.ACTIVE], 0)
        self._repeated[router.name] = False
        self.loop.after(REPEAT, lambda: self._repeat_over(router, group))

    def _repeat_over(self, router: Router, group: Optional[settings.Group]) -> None:
        again = self._repeated.pop(router.name)
        if again and router.active:
            self._tell_again(router, group)

    def _expect_end(self, router: Router, rival: Rival) -> None:
        self.loop.at(rival.over_at, lambda: self._look_again(router, rival.source))

    def _look_again(self, router: Router, source: str) -> None:
        still = next((rival for rival in router.rivals.present(self.loop.now()) if rival.source == source), None)
        if still:
            self._expect_end(router, still)
        else:
            self.log.cured(f"rival {router.name} {source}", f"{router.name}: {source} is no longer Active as well")

    def group_changed(self, group: settings.Group, members: Sequence[Router]) -> None:
        """Report a sync group once all its members have reached another state."""
        states = {member.state.name for member in members}
        if len(states) != 1 or states == {self.groups[group.name]}:
            return
        (state,), before = states, self.groups[group.name]
        self.groups[group.name] = state
        self.log.info(f"{group.name}: the sync group is {state}")
        if NOTIFY_STATES[state] != NOTIFY_STATES[before]:
            self._notify(group, "GROUP", NOTIFY_STATES[state], 0)

    def _notify(self, of: Union[settings.Instance, settings.Group], kind: str, state: str, priority: int) -> None:
        if of.notify:
            self.checks.run((*of.notify, kind, of.name, state, str(priority)), of.notify_user or self._user)
