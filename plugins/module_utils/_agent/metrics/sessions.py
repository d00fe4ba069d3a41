# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sessions of BGP, as FRR prints them in JSON. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

ESTABLISHED = "Established"
FAMILIES = {"ipv4Unicast": "ipv4", "ipv6Unicast": "ipv6"}
SUMMARY, BFD = "show bgp summary json", "show bfd peers json"  # the commands of vtysh whose answers `read` takes


class Session(NamedTuple):
    """A session of BGP, with one family."""

    peer: str
    asn: int
    family: str
    state: str  # RFC 4271's word, such as Established or Active
    since: Optional[float]  # seconds since 1970 of the last change; None if there was none
    sent: int  # VIPs that are announced to it
    accepted: int
    established: int  # how often it was
    dropped: int
    bfd: str  # up, down, init or shutdown; '' where BFD does not watch it
    bfd_interval: int = 0  # in milliseconds, how often the router accepts a BFD packet at most; 0 where it is not up

    @property
    def announces(self) -> bool:
        """Whether a router has a VIP from here."""
        return self.state == ESTABLISHED and self.sent > 0


def family_of(address: str) -> str:
    return FAMILIES["ipv6Unicast" if ":" in address else "ipv4Unicast"]


def announced(sessions: Sequence[Session], address: str) -> bool:
    """Return whether a router has a VIP that is on lo: at least one session of its family is established."""
    return any(session.announces for session in sessions if session.family == family_of(address))


def read(summary: str, bfd: str, now: float) -> List[Session]:
    """Return the sessions, by family and peer.

    :param bfd: what FRR says of BFD, '' where it does not
    :param now: seconds since 1970
    """
    watched = {str(each.get("peer")): each for each in _mappings(_json(bfd))}
    return [
        _session(peer, family, known, watched.get(peer, {}), now)
        for key, family in FAMILIES.items()
        for peer, known in sorted(_mapping(_mapping(_mapping(_json(summary)).get(key)).get("peers")).items())
        if isinstance(known, dict)
    ]


def _session(peer: str, family: str, known: Mapping[str, Any], bfd: Mapping[str, Any], now: float) -> Session:
    lasted = _number(known.get("peerUptimeMsec"))
    return Session(
        peer=peer,
        asn=_number(known.get("remoteAs")),
        family=family,
        state=str(known.get("state", "")),
        since=now - lasted / 1000 if lasted else None,
        sent=_number(known.get("pfxSnt")),
        accepted=_number(known.get("pfxRcd")),
        established=_number(known.get("connectionsEstablished")),
        dropped=_number(known.get("connectionsDropped")),
        bfd=str(bfd.get("status", "")),
        bfd_interval=_number(bfd.get("remote-receive-interval")) if bfd.get("status") == "up" else 0,
    )


def _json(text: str) -> Any:
    """Return what vtysh prints as JSON; nothing where it prints a sentence instead, as without an instance of BGP."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _mapping(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> Iterable[Dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
