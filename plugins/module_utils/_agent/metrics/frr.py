# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Prometheus is told of a host that announces its VIPs by BGP: the sessions of FRR, and which VIPs have one."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import subprocess
import time
from typing import Any, Callable, Dict, Iterable, List, Optional

from ..net.netlink import Netlink
from ..runtime.prometheus import Metric, Report, Sample, exposition
from .sessions import BFD, ESTABLISHED, SUMMARY, Session, announced, family_of, read

PREFIX = "onprem_lb_bgp"
TIMEOUT = 2.0  # seconds: what else there is to report does not wait for one that hangs

Said = Callable[[str], Optional[str]]  # what FRR says to a command; None if it says nothing


def vtysh(command: str) -> Optional[str]:
    """Return what FRR says to a command; None if it is not there, does not run, or hangs."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        ran = subprocess.run(["vtysh", "-c", command], check=False, timeout=TIMEOUT, **pipes)  # type: ignore
    except (OSError, subprocess.SubprocessError):
        return None
    return None if ran.returncode else ran.stdout.decode(errors="replace")


def on_interface(name: str) -> List[str]:
    """Return the addresses of an interface."""
    with contextlib.closing(Netlink()) as kernel:
        indexes = {link.index for link in kernel.links() if link.name == name}
        return [each.address for each in kernel.addresses() if each.index in indexes]


def metrics(config: str, say: Said = vtysh, present: Callable[[str], List[str]] = on_interface) -> Optional[str]:
    """Return the metrics; None if FRR does not say its sessions.

    :param config: of the health gate
    """
    summary = say(SUMMARY)
    if summary is None:
        return None
    sessions = read(summary, say(BFD) or "", time.time())
    return exposition(PREFIX, METRICS, {"sessions": sessions, "vips": _vips(config, sessions, present)})


def _vips(config: str, sessions: List[Session], present: Callable[[str], List[str]]) -> List[Report]:
    """Return ``{vip, address, family, announced}`` of each VIP; none where the gate's file is damaged."""
    try:
        gate = json.loads(config)
        found = {each["name"]: str(ipaddress.ip_address(each["address"])) for each in gate["vips"]}
        here = present(gate.get("interface", "lo"))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return []
    return [
        {
            "vip": name,
            "address": f"{ip}/{ipaddress.ip_address(ip).max_prefixlen}",
            "family": family_of(ip),
            "announced": ip in here and announced(sessions, ip),
        }
        for name, ip in found.items()
    ]


def _each(value: Callable[[Session], Optional[float]]) -> Callable[[Report], Iterable[Sample]]:
    def samples(report: Report) -> Iterable[Sample]:
        known = [(session, value(session)) for session in report["sessions"]]
        return [(_labels(session), found) for session, found in known if found is not None]

    return samples


def _labels(session: Session) -> Dict[str, Any]:
    return {"peer": session.peer, "family": session.family}


def _announced(report: Report) -> Iterable[Sample]:
    for vip in report["vips"]:
        yield {key: vip[key] for key in ("vip", "address", "family")}, vip["announced"]


METRICS = (
    Metric("announced", "Whether a VIP is on the interface, and a router has it from here.", _announced),
    Metric("session_established", "Whether a session is established.", _each(lambda s: s.state == ESTABLISHED)),
    Metric("session_since_seconds", "Since when that is so, since 1970.", _each(lambda s: s.since)),
    Metric("session_sent", "How many VIPs a router has from here.", _each(lambda s: s.sent)),
    Metric("session_dropped_total", "How often a session ended.", _each(lambda s: s.dropped)),
    Metric("session_bfd_up", "Whether BFD is up, where it watches.", _each(lambda s: s.bfd == "up" if s.bfd else None)),
)
