# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prepares the Backup-to-Active transition ahead of the timer, so that at expiry only system calls remain.

The state machine is pure, so a Backup whose Active_Down_Timer is about to expire can compute what it will do. Most of
the time of doing it would be Python's own. So all calls that other hosts can observe are built in advance and made in
one go at expiry. The daemon then processes the event as always, and each prepared call reports its result in turn.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .core import effects, machine, sync_group


class PreparedCall:
    """A system call that may be made early. When its turn comes it is made if it was not, or again if it failed."""

    __slots__ = ("_call", "_required", "_done", "_error")

    def __init__(self, call: Callable[[], Any], required: bool = False) -> None:
        """
        :param call: raises OSError
        :param required: if it fails, no later call of the same router may follow, and its turn raises the same error
        """
        self._call, self._required = call, required
        self._done = False
        self._error: Optional[OSError] = None

    def run_early(self) -> bool:
        """Make the call before its turn; return whether the router's next calls may follow."""
        try:
            self._call()
            self._done = True
        except OSError as error:
            if self._required:
                self._error = error
        return not self._error

    def __call__(self) -> None:
        if self._error:
            raise self._error
        if not self._done:
            self._call()


# By the router's name and what is done: a priority and a destination, an address to add, or an address to announce.
PreparedCalls = Dict[Tuple[Any, ...], PreparedCall]


class PreparedTakeover:
    """What a router and its sync group will do when Active_Down_Timer expires. Used once."""

    def __init__(self, transport: Any, addresses: Any, members: Sequence[Any], at: int, deadline: int) -> None:
        """
        :param members: of the sync group; most routers have none, and are the only member
        :param at: the member whose timer expires
        """
        self._members = members
        self._states = [member.state for member in members]
        machines = [member.machine for member in members]
        _after, actions = sync_group.step(machines, self._states, at, machine.Timeout(), deadline)
        self.calls: PreparedCalls = {}
        self._calls_of: List[List[PreparedCall]] = [[] for _member in members]
        for number, effect in actions:
            found = self._prepared(transport, addresses, members[number], effect)
            self.calls.update(found)
            self._calls_of[number] += found.values()

    def _prepared(self, transport: Any, addresses: Any, member: Any, effect: effects.Effect) -> PreparedCalls:
        if isinstance(effect, effects.Send):
            return transport.prepare(member, effect.priority)
        if isinstance(effect, effects.AddAddresses):
            return addresses.prepare_adding(member)
        return addresses.prepare_announcing(member) if isinstance(effect, effects.Announce) else {}

    def begin(self) -> None:
        """Make all calls, unless an event has changed a member's state since they were prepared."""
        if any(member.state is not state for member, state in zip(self._members, self._states)):
            return
        for calls in self._calls_of:
            for call in calls:
                if not call.run_early():
                    break
