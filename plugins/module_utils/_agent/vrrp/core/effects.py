# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The effects of a state machine's step, to be carried out in order.

On promotion the Advertisement comes first, so that the former Active router removes the addresses before other hosts
learn where they are now. The addresses come before their announcement: only a present address may be announced.
"""

from __future__ import annotations

from typing import NamedTuple, Union


class Send(NamedTuple):
    """Send an Advertisement with this priority to all peers; 0 means that the router resigns."""

    priority: int


class AddAddresses(NamedTuple):
    """Put the virtual addresses on the interface."""


class RemoveAddresses(NamedTuple):
    """Remove the virtual addresses from the interface."""


class Announce(NamedTuple):
    """Announce the addresses: gratuitous ARP, or an unsolicited Neighbour Advertisement."""


class StateChanged(NamedTuple):
    """The state has changed: for the log and the notify programs."""

    before: str
    after: str
    reason: str


Effect = Union[Send, AddAddresses, RemoveAddresses, Announce, StateChanged]
