# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads FRR through vtysh: its sessions of BGP, what BFD says of them, and the configuration that it runs."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional

from .reader import Reader

VTYSH = "vtysh"
PATIENCE = "20"  # seconds, after which a daemon that does not answer is left alone
ESTABLISHED = "Established"
FAMILIES = {"ipv4Unicast": "ipv4", "ipv6Unicast": "ipv6"}


class NoAnswer(Exception):
    """FRR did not say what it was asked; the text is a sentence."""


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


def ask(reader: Reader, command: str) -> str:
    """Return what FRR says to a command.

    :raises NoAnswer: it is not installed, does not run, or hangs
    """
    vtysh = reader.find(VTYSH)
    if not vtysh:
        raise NoAnswer("FRR is not installed: vtysh is missing.")
    code, out, err = reader.run(["timeout", PATIENCE, vtysh, "-c", command])
    if code:
        said = " ".join(err.split())  # its other words may be a configuration, with passwords
        raise NoAnswer(f"FRR does not answer ({said or f'vtysh ended with code {code}'}): see `systemctl status frr`.")
    return out


def running_config(reader: Reader) -> str:
    """Return the configuration that FRR runs, whatever its file says.

    :raises NoAnswer: FRR does not say it
    """
    return ask(reader, "show running-config")


def sessions(reader: Reader, now: Optional[float] = None) -> List[Session]:
    """Return the sessions, by family and peer.

    :raises NoAnswer: FRR does not say them
    """
    summary = _json(ask(reader, "show bgp summary json"))
    watched = {each.get("peer"): str(each.get("status", "")) for each in _mappings(_bfd(reader))}
    at = time.time() if now is None else now
    return [
        _session(peer, family, known, watched.get(peer, ""), at)
        for key, family in FAMILIES.items()
        for peer, known in sorted(_mapping(_mapping(_mapping(summary).get(key)).get("peers")).items())
        if isinstance(known, dict)
    ]


def _bfd(reader: Reader) -> Any:
    try:
        return _json(ask(reader, "show bfd peers json"))
    except NoAnswer:  # without bfdd the sessions are there all the same
        return []


def _session(peer: str, family: str, known: Mapping[str, Any], bfd: str, now: float) -> Session:
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
        bfd=bfd,
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
