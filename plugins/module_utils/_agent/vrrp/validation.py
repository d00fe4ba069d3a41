# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whose an incoming message is, and whether it counts. Pure: hostile bytes end here, as a reason that is counted."""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

from ..net.ip import Datagram
from .core import packet
from .settings import Instance

# Reasons besides packet.REASONS.
FRAGMENT, OWN, DESTINATION, PEER = "fragment", "own", "destination", "peer"
REASONS = (*packet.REASONS, FRAGMENT, OWN, DESTINATION, PEER)


class LocalInstance(NamedTuple):
    """A Virtual Router of ours, as a message meets it."""

    instance: Instance
    advertisement: packet.Advertisement  # what we send ourselves
    source: str


def vrid_of(message: bytes) -> int:
    """Return the VRID in a message that may be anything; 0, which nobody has, where there is none."""
    return message[1] if len(message) > 1 else 0


def validate(datagram: Datagram, ours: Optional[LocalInstance]) -> Union[packet.Advertisement, packet.Discard, None]:
    """Return the Advertisement that counts, or why it does not; None for the Virtual Router of somebody else.

    :param ours: the Virtual Router of its VRID, on its interface and in its family
    """
    if not datagram.whole:
        return packet.Discard(FRAGMENT, "a fragment received, and no VRRP router has reason to send one")
    multicast = datagram.destination in (packet.GROUP, packet.GROUP6)
    # keepalived sends unicast over IPv6 with 64, and does not look at it itself.
    hop_limit = datagram.hop_limit if multicast else packet.REQUIRED_HOP_LIMIT
    said = packet.decode(datagram.message, datagram.source, datagram.destination, hop_limit)
    if isinstance(said, packet.Discard):
        return said
    return None if ours is None else _unwanted(datagram, multicast, said, ours) or said


def _unwanted(
    datagram: Datagram, multicast: bool, said: packet.Advertisement, ours: LocalInstance
) -> Optional[packet.Discard]:
    """Why a sound Advertisement with our VRID is not for us."""
    if datagram.source == ours.source:
        return packet.Discard(OWN, "our own message came back: there is a loop in the link, or a second host with it")
    if multicast != ours.instance.multicast:
        ways = ("multicast", "unicast") if multicast else ("unicast", "multicast")
        return packet.Discard(DESTINATION, "{} received, {} expected".format(*ways))
    if not multicast and datagram.source not in ours.instance.peers:
        return packet.Discard(PEER, f"{datagram.source} is not among the peers")
    return packet.mismatch(said, ours.advertisement)
