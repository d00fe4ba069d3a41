# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Counts successes until a target is up, and failures until it is down. Pure."""

from __future__ import annotations

from typing import NamedTuple, Optional


class RiseFall(NamedTuple):
    """The state of a target so far."""

    up: Optional[bool] = None  # None: not known yet
    against: int = 0  # outcomes in a row that contradict it

    @property
    def certain(self) -> bool:
        """Whether the latest outcome agrees with the state."""
        return not self.against


UNKNOWN = RiseFall()


def count(state: RiseFall, success: bool, rise: int, fall: int) -> RiseFall:
    """Return the state after one more outcome.

    The first outcome decides at once: waiting for more would only delay the start of a router.

    :param rise: successes in a row that make it up
    :param fall: failures in a row that make it down
    """
    if state.up is None or success == state.up:
        return RiseFall(success)
    against = state.against + 1
    return RiseFall(success) if against >= (rise if success else fall) else RiseFall(state.up, against)
