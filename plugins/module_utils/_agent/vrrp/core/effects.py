# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a Virtual Router wants done, in the order of the list; nothing here does it.

On promotion the Advertisement goes first, so that a former Active router removes the addresses before others hear of
their new place; the addresses come before their announcement, because nothing may be announced that is not there.
"""

from __future__ import annotations

from typing import NamedTuple, Union


class Send(NamedTuple):
    """Send an Advertisement with this priority to all peers; 0 means that the router gives up."""

    priority: int


class AddAddresses(NamedTuple):
    """Put the virtual addresses on the interface."""


class RemoveAddresses(NamedTuple):
    """Take them away."""


class Announce(NamedTuple):
    """Say that the addresses are here: gratuitous ARP, or an unsolicited Neighbour Advertisement."""


class StateChanged(NamedTuple):
    """The state is another one: for the log, and for whoever asked to be notified."""

    before: str
    after: str
    reason: str


Effect = Union[Send, AddAddresses, RemoveAddresses, Announce, StateChanged]
