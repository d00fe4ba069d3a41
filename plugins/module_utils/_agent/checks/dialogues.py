# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The probe of a check over the network: one connection or several, and what is said through each."""

from __future__ import annotations

from ..runtime.loop import Loop
from . import haproxy, http, protocols, tls
from .network import Dialogue, NetworkProbe, Sequence, after, connect_only
from .outcome import Probe
from .settings import HAPROXY, HTTP, HTTPS, PROTOCOLS, TCP, Check, Step


def network_probe(loop: Loop, check: Check) -> Probe:
    """Return the probe of a check over the network.

    :raises ImportError: for https if Python has no TLS
    """
    probes = [
        NetworkProbe(
            loop, check.address, step.port, check.timeout, _dialogue(check, step), connect_timeout=check.connect_timeout
        )
        for step in check.sequence
    ]
    return probes[0] if len(probes) == 1 else Sequence(probes)


def _dialogue(check: Check, step: Step) -> Dialogue:
    """Return what follows once the connection of a step is there."""
    if step.type in PROTOCOLS:
        plain = protocols.dialogue(step.type, step.user, step.host)
    else:
        plain = {TCP: connect_only, HAPROXY: haproxy.show_info}.get(step.type) or _http(check, step)
    if step.type == HTTPS:
        plain = tls.dialogue(step.sni or step.host or check.address, check.verify, check.ca, plain)
    return after(step.greeting.encode("latin-1"), plain)


def _http(check: Check, step: Step) -> Dialogue:
    default_port = 80 if step.type == HTTP else 443
    host = http.host_header(step.host or check.address, step.port, default_port)
    return http.dialogue(host, step.path, step.status, step.method)
