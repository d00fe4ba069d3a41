# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What this host has beside its router, the agent's other daemons and the resolver, and what each of them answers.

A part that is configured on this host should answer. One that is not is no part of it.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ..anycast import settings as anycast_settings
from ..anycast import show as anycast
from ..config import reports
from ..direct import settings as direct_settings
from ..direct import show as direct
from ..follow import settings as follow_settings
from ..follow import show as follow
from ..net import name_server
from ..proxy.settings import Settings as Proxy
from ..proxy.views import metrics as proxy
from ..resolver import show as resolver_state
from ..runtime import status_socket
from . import frr

TIMEOUT = 1.0  # seconds: what else there is to report does not wait for one that hangs
LISTEN = re.compile(r"^listen-address=([^,\n]+)", re.MULTILINE)
RECORD = re.compile(r"^host-record=([^,\n]+),([^,\n]+)", re.MULTILINE)

Text = Callable[[str], str]  # what is in a file, '' if there is none


class Part(NamedTuple):
    """A part, and how it is asked.

    :ivar ask: returns its metrics, given its configuration; None if it does not answer
    """

    name: str
    config: str
    ask: Callable[[str], Optional[str]]


def daemon(socket: str, metrics: Callable[[Dict[str, Any]], str]) -> Callable[[str], Optional[str]]:
    """Return what asks a daemon of the agent for its report."""

    def ask(_config: str) -> Optional[str]:
        try:
            report = status_socket.fetch(socket, TIMEOUT)
        except status_socket.Refused:
            return None
        try:
            return metrics(report)
        except reports.STRANGE:  # it is of another version, which reports something else
            return ""

    return ask


def _state() -> str:
    try:
        with open(resolver_state.STATE, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def resolver(
    config: str, ask: Callable[..., name_server.Answer] = name_server.ask, state: Callable[[], str] = _state
) -> Optional[str]:
    """Ask the resolver for the first name that it has of its own. Its metrics are its keeper's.

    :param config: dnsmasq's, as `_plan.dns.resolver` writes it
    """
    listens, records = LISTEN.search(config), RECORD.findall(config)
    server = listens[1] if listens else "127.0.0.1"
    metrics = resolver_state.prometheus(resolver_state.load(state()))
    if not records:
        return None if ask(server, "localhost", "A").rcode is None else metrics
    for kind in name_server.TYPES:
        wanted = [ip for name, ip in records if name == records[0][0] and (":" in ip) == (kind == "AAAA")]
        if wanted and ask(server, records[0][0], kind) != name_server.Answer(0, sorted(wanted)):
            return None
    return metrics


GATE = "/etc/onprem-lb-agent/anycast.json"  # of the health gate, without which FRR announces nothing of ours
PARTS = (
    Part("proxy", "/etc/onprem-lb-agent/proxy.json", daemon(Proxy(()).status_socket, proxy.prometheus)),
    Part("direct", "/etc/onprem-lb-direct/direct.json", daemon(direct_settings.STATUS_SOCKET, direct.prometheus)),
    Part("anycast", GATE, daemon(anycast_settings.STATUS_SOCKET, anycast.prometheus)),
    Part("frr", GATE, frr.metrics),
    Part("follow", "/etc/onprem-lb-follow/follow.json", daemon(follow_settings.STATUS_SOCKET, follow.prometheus)),
    Part("resolver", "/etc/onprem-lb-resolver/dnsmasq.conf", resolver),
)


def read(text: Text, parts: Tuple[Part, ...] = PARTS) -> Tuple[Dict[str, bool], str]:
    """Return which of the parts that this host has answer, and the metrics of those that do."""
    found = {part.name: part.ask(config) for part, config in ((part, text(part.config)) for part in parts) if config}
    return {name: metrics is not None for name, metrics in found.items()}, "".join(filter(None, found.values()))
