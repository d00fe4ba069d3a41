# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A takeover that is made ready while there is still time, so that in the end only the kernel has to be called.

A Backup whose patience is nearly over knows what it will do, because its machine is pure. Most of the time of doing it
would be Python's own; so whatever can be seen from outside is done in one go, and then all of it is gone through in
order, as always, with what came of it.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

from .core import effects, machine, sync_group


class PreparedCall:
    """A system call. Called in its turn it is made, unless it was made ahead: then what came of it is raised now."""

    __slots__ = ("_call", "_vital", "_done", "_fault")

    def __init__(self, call: Callable[[], Any], vital: bool = False) -> None:
        """
        :param call: raises OSError
        :param vital: nothing of the same router may follow if it fails
        """
        self._call, self._vital = call, vital
        self._done = False
        self._fault: Optional[OSError] = None

    def ahead(self) -> bool:
        """Do it before its turn; return whether what follows may be done."""
        self._done = True
        try:
            self._call()
        except OSError as fault:
            self._fault = fault
        return not (self._fault and self._vital)

    def __call__(self) -> None:
        if self._fault:
            raise self._fault
        if not self._done:
            self._call()


class PreparedTakeover:
    """What the end of a router's patience will bring, for all of its sync group; for one use."""

    def __init__(self, ears: Any, holding: Any, members: Sequence[Any], at: int, deadline: int) -> None:
        """
        :param members: of the sync group, which most routers are alone in
        :param at: whose patience it is
        """
        self._members = members
        self._states = [member.state for member in members]
        machines = [member.machine for member in members]
        _after, wanted = sync_group.step(machines, self._states, at, machine.Timeout(), deadline)
        self._deeds: List[List[PreparedCall]] = [[] for _member in members]
        for number, effect in wanted:
            member = members[number]
            if isinstance(effect, effects.Send):
                self._deeds[number] += ears.prepare(member, effect.priority)
            elif isinstance(effect, effects.AddAddresses):
                self._deeds[number] += holding.prepare_adding(member)
            elif isinstance(effect, effects.Announce):
                self._deeds[number] += holding.prepare_announcing(member)

    def begin(self) -> None:
        """Do it, if nobody was heard meanwhile; whoever then gives the event to the machines finds it done."""
        if any(member.state is not state for member, state in zip(self._members, self._states)):
            return
        for deeds in self._deeds:
            for deed in deeds:
                if not deed.ahead():
                    break

    def forget(self) -> None:
        """To be called when all is over, or did not come to that."""
        for member in self._members:
            member.ready.clear()
