# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Validates received messages. Pure: a malformed or hostile message ends here, as a counted reason."""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

from ..net.ip import Datagram
from .core import packet
from .settings import Instance

# Reasons besides packet.REASONS.
FRAGMENT, OWN, DESTINATION, PEER = "fragment", "own", "destination", "peer"
REASONS = (*packet.REASONS, FRAGMENT, OWN, DESTINATION, PEER)


class LocalInstance(NamedTuple):
    """What a message for one of our Virtual Routers is compared with."""

    instance: Instance
    advertisement: packet.Advertisement  # what we send
    source: str


def vrid_of(message: bytes) -> int:
    """VRID of an untrusted message, or 0 (never valid) if it is too short."""
    return message[1] if len(message) > 1 else 0


def validate(datagram: Datagram, ours: LocalInstance) -> Union[packet.Advertisement, packet.Discard]:
    """Return the Advertisement, or why it is discarded.

    :param ours: our Virtual Router with its VRID, on its interface and in its family
    """
    if not datagram.whole:
        return packet.Discard(FRAGMENT, "a fragment received, and no VRRP router has reason to send one")
    multicast = datagram.destination in (packet.GROUP, packet.GROUP6)
    nearest = packet.REQUIRED_HOP_LIMIT if multicast else ours.instance.min_ttl
    received = packet.decode(datagram.message, datagram.source, datagram.destination, datagram.hop_limit, nearest)
    if isinstance(received, packet.Discard):
        return received
    return _unwanted(datagram, multicast, received, ours) or received


def _unwanted(
    datagram: Datagram, multicast: bool, received: packet.Advertisement, ours: LocalInstance
) -> Optional[packet.Discard]:
    """Return why a valid Advertisement with our VRID is not for us."""
    if datagram.source == ours.source:
        return packet.Discard(OWN, "our own message came back: there is a loop in the link, or a second host with it")
    if multicast != ours.instance.multicast:
        ways = ("multicast", "unicast") if multicast else ("unicast", "multicast")
        return packet.Discard(DESTINATION, "{} received, {} expected".format(*ways))
    if not multicast and datagram.source not in ours.instance.peers:
        return packet.Discard(PEER, f"{datagram.source} is not among the peers")
    return packet.mismatch(received, ours.advertisement)
