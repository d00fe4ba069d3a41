# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member announces by BGP: its VIPs on lo, what its health gate says of them, and the sessions of FRR."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._agent.metrics.sessions import Session
from ..._agent.runtime.text_table import problems
from ..._shared import paths
from ..._shared.engines import ANYCAST, FRR, FRR_UNIT, Daemon
from . import bgp, facts, in_force
from .reader import Reader

UNITS = (FRR_UNIT, paths.GATE)
VERSION = re.compile(r"FRRouting (\d+(?:\.\d+)+)")
DRAINED = re.compile(r"^\s*bgp graceful-shutdown$", re.MULTILINE)  # RFC 8326
PAUSE = 0.5  # seconds between two looks at connections
OWN_AS = re.compile(r"^router bgp (\d+)", re.MULTILINE)
NO_BGPD = re.compile(r"is not running|failed to connect to any daemons|is not installed")  # why `bgp.ask` says nothing


class Frr(NamedTuple):
    """What FRR says.

    :ivar silent: why it says nothing; a sentence
    :ivar knows: whether the sessions are known: a bgpd that does not run has none, and one that hangs may have some
    """

    version: str = ""
    sessions: Sequence[Session] = ()
    is_drained: bool = False
    asn: int = 0
    silent: str = ""
    knows: bool = True


class Announcing(NamedTuple):
    """What a member is configured to announce, and what becomes of it.

    :ivar said: the VIPs, as the report of its gate has them; what it does not say is missing
    :ivar failing: the checks that fail, but those of files, and why each does
    :ivar track_files: those that its checks read
    :ivar direct: each VIP and port at which direct return keeps lasting connections, whichever member gets them
    """

    vips: List[str]
    on_loopback: List[str]
    said: Dict[str, Dict[str, Any]]
    problems: List[str]
    failing: Dict[str, str]
    track_files: List[str]
    direct: List[Tuple[str, int]]
    frr: Frr

    @property
    def versions(self) -> Dict[str, str]:
        return {FRR: self.frr.version} if self.frr.version else {}

    def held(self, vips: Sequence[str]) -> List[Dict[str, Any]]:
        """Return which of these are on lo, each with the seconds for which it has been there, if known."""
        now, here = time.time(), [vip for vip in vips if vip in self.on_loopback]
        since = {vip: said["since"] for vip, said in self.said.items() if said.get("held") and said.get("since")}
        return [{"address": vip, "seconds": int(max(0, now - since[vip])) if vip in since else None} for vip in here]

    @property
    def shown(self) -> Dict[str, Any]:
        """What `member_info` returns."""
        return {
            "vips": [_shown_vip(vip, self.said.get(vip, {})) for vip in self.vips],
            "sessions": [_shown_session(session, time.time()) for session in self.frr.sessions],
            "asn": self.frr.asn,
            "connections": facts.connections(self.vips),
            "direct": self.direct,
            "drained": self.frr.is_drained,
            "silent": self.frr.silent,
            "sessions_known": self.frr.knows,
            "problems": self.problems,
        }


def _shown_vip(vip: str, said: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "address": vip,
        "reason": said.get("reason", ""),
        "detail": said.get("detail", ""),
        "elsewhere": list(said.get("elsewhere", ())),
    }


def _shown_session(session: Session, now: float) -> Dict[str, Any]:
    seconds = None if session.since is None else int(max(0, now - session.since))
    shown = ("peer", "asn", "family", "state", "sent", "bfd")
    return {**{key: getattr(session, key) for key in shown}, "seconds": seconds, "announces": session.announces}


def is_here() -> bool:
    """Whether this collection has set up this host to announce VIPs."""
    return facts.is_ours(paths.GATE)


def read(reader: Reader) -> Announcing:
    """Return what this host announces. Its gate is asked, and what it does not say is in its file."""
    config, report = facts.agent_config(reader.text(paths.GATE_CONFIG)), in_force.report_of(Daemon(ANYCAST))
    checks = [check for check in report.get("checks", []) if check.get("up") is False and check.get("type") != "file"]
    return Announcing(
        vips=facts.vip_addresses(config.get("vips", [])),
        on_loopback=reader.on_loopback(),
        said={vip["address"].partition("/")[0]: vip for vip in report.get("vips", []) if "address" in vip},
        problems=problems(report) if report else [],
        failing={check["name"]: check.get("detail") or "it failed" for check in checks},
        track_files=[check["file"] for check in config.get("checks", []) if "file" in check],
        direct=_direct(reader),
        frr=_frr(reader),
    )


def _direct(reader: Reader) -> List[Tuple[str, int]]:
    if not facts.is_ours(paths.PLANE):
        return []
    services = facts.agent_config(reader.text(paths.PLANE_CONFIG)).get("services", [])
    return [(vip, each["port"]) for each in services if "port" in each for vip in each.get("bind", [])]


def wait_for_connections(reader: Reader, limit: float) -> None:
    """Wait until no TCP connection to a VIP of this host is left, at most for so many seconds."""
    vips = facts.vip_addresses(facts.agent_config(reader.text(paths.GATE_CONFIG)).get("vips", []))
    end = time.monotonic() + limit
    while facts.connections(vips) and time.monotonic() < end:
        time.sleep(min(PAUSE, limit))


def _frr(reader: Reader) -> Frr:
    try:
        sessions = bgp.sessions(reader)
    except bgp.NoAnswer as error:
        return Frr(silent=str(error), knows=bool(NO_BGPD.search(str(error))))
    version, running = VERSION.search(_said(reader, "show version")), _said(reader, "show running-config")
    own = OWN_AS.search(running)
    return Frr(version[1] if version else "", sessions, bool(DRAINED.search(running)), int(own[1]) if own else 0)


def _said(reader: Reader, command: str) -> str:
    try:
        return bgp.ask(reader, command)
    except bgp.NoAnswer:
        return ""
