# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a run of successes makes a thing up, and a run of failures makes it down. Pure."""

from __future__ import annotations

from typing import NamedTuple, Optional


class RiseFall(NamedTuple):
    """What is believed so far."""

    up: Optional[bool] = None  # None: nothing is known yet
    against: int = 0  # outcomes in a row that speak against it

    @property
    def certain(self) -> bool:
        """No outcome casts a doubt on what is believed."""
        return not self.against


UNKNOWN = RiseFall()


def count(board: RiseFall, success: bool, rise: int, fall: int) -> RiseFall:
    """Return what is believed after one more outcome.

    The first outcome decides at once: to wait for more would only keep a router from starting.

    :param rise: successes in a row that make it up
    :param fall: failures in a row that make it down
    """
    if board.up is None or success == board.up:
        return RiseFall(success)
    against = board.against + 1
    return RiseFall(success) if against >= (rise if success else fall) else RiseFall(board.up, against)
