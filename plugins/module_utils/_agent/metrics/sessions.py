# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sessions of BGP, as FRR prints them in JSON. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..config import records
from ..config.schema import Field

ESTABLISHED = "Established"
FAMILIES = {"ipv4Unicast": "ipv4", "ipv6Unicast": "ipv6"}
SUMMARY, BFD = "show bgp summary json", "show bfd peers json"  # the commands of vtysh whose answers `read` takes

WORD = Field(records.exactly(str, "a word", lambda value: len(value) <= 100 and value.isprintable()), "")
COUNT = Field(records.whole(0, 1 << 53), 0)
COUNTS = ("remoteAs", "peerUptimeMsec", "pfxSnt", "pfxRcd", "connectionsEstablished", "connectionsDropped")
# What is read of a peer's record, and of that of BFD.
PEER = {"state": WORD, **dict.fromkeys(COUNTS, COUNT)}
OF_BFD = {"peer": WORD, "status": WORD, "remote-receive-interval": COUNT}


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
    watched = {each["peer"]: each for each in map(_of_bfd, _list(records.printed(bfd)))}
    whole = _mapping(records.printed(summary))
    return [
        _session(peer, family, records.fitting(PEER, known), watched.get(peer, _of_bfd({})), now)
        for key, family in FAMILIES.items()
        for peer, known in sorted(_mapping(_mapping(whole.get(key)).get("peers")).items())
        if isinstance(known, dict) and not WORD.check(peer)[1]
    ]


def _session(peer: str, family: str, known: Mapping[str, Any], bfd: Mapping[str, Any], now: float) -> Session:
    lasted = known["peerUptimeMsec"]
    return Session(
        peer=peer,
        asn=known["remoteAs"],
        family=family,
        state=known["state"],
        since=now - lasted / 1000 if lasted else None,
        sent=known["pfxSnt"],
        accepted=known["pfxRcd"],
        established=known["connectionsEstablished"],
        dropped=known["connectionsDropped"],
        bfd=bfd["status"],
        bfd_interval=bfd["remote-receive-interval"] if bfd["status"] == "up" else 0,
    )


def _of_bfd(given: Any) -> Dict[str, Any]:
    return records.fitting(OF_BFD, given)


def _mapping(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []
