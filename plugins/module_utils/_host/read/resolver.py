# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where this host has its names from, and whether a name server answers as it should."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from typing import Any, Dict, List, Sequence

from ..._agent.net.name_server import PORT, TYPES, Answer, ask
from ..._shared import platforms, resolver_records
from . import facts, ownership
from .reader import Reader

RESOLV_CONF = "/etc/resolv.conf"
UNITS = {"resolved": "systemd-resolved.service", "networkmanager": "NetworkManager.service"}
# Where these programs keep the name servers that they were given, by the names that a plan has for them.
UPSTREAMS = {
    "systemd-resolved": "/run/systemd/resolve/resolv.conf",
    "NetworkManager": "/run/NetworkManager/resolv.conf",
}
ELSEWHERE = {4: "192.0.2.1", 6: "2001:db8::1"}  # documentation: the address from which this host would send there


def read(reader: Reader, path: str = RESOLV_CONF) -> Dict[str, Any]:
    """Return what a plan needs to know."""
    active = reader.units_in("ActiveState", list(UNITS.values()), "active")
    kept = ownership.kept(path)
    return {
        "os_family": platforms.os_family(reader.text(facts.OS_RELEASE)),
        "addresses": addresses(reader.addresses() or []),
        "source": source(),
        "port_53": [each for each in facts.listeners() if each["port"] == PORT],
        "resolv_conf": {
            "text": reader.text(path),
            "target": _target(path),
            "kept": os.path.lexists(kept),
            "kept_text": reader.text(kept),
            "kept_target": _target(kept),
            "mounted": os.path.ismount(path),
        },
        "upstreams": {name: reader.text(file) for name, file in UPSTREAMS.items()},
        "resolved_config": _resolved_config(reader),
        "answering": reader.text(resolver_records.PATH),
        **{name: unit in active for name, unit in UNITS.items()},
    }


def _resolved_config(reader: Reader) -> str:
    """Return all files of systemd-resolved's configuration, each below its path."""
    program = reader.find("systemd-analyze")
    return reader.run([program, "cat-config", "systemd/resolved.conf"])[1] if program else ""


def addresses(found: List[Dict[str, Any]]) -> List[str]:
    """Return the addresses at which others reach this host, IPv4 first."""
    ips = [ipaddress.ip_address(each["address"]) for each in found]
    usable = [ip for ip in ips if not (ip.is_loopback or ip.is_link_local)]
    return [str(ip) for ip in sorted(usable, key=lambda ip: ip.version)]


def source() -> str:
    """Return the address from which this host sends to others, IPv4 before IPv6; '' without a route. Sends nothing."""
    for version, elsewhere in ELSEWHERE.items():
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, PORT))
            return str(probe.getsockname()[0])
    return ""


def _target(path: str) -> str:
    """Return the file to which a symbolic link leads, '' if it is none."""
    return os.path.realpath(path) if os.path.islink(path) else ""


def wrong_answers(server: str, wanted: Sequence[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each name to which a name server does not answer as wanted.

    :param wanted: each with its ``name`` and all of its ``addresses``; a family without one has an empty answer
    """
    sentences = []
    for each in wanted:
        for kind in TYPES:
            good = sorted(address for address in each["addresses"] if (":" in address) == (kind == "AAAA"))
            said = ask(server, each["name"], kind)
            if said != Answer(0, good):
                what = "does not answer" if said.rcode is None else f"answers {said.addresses or f'code {said.rcode}'}"
                sentences.append(f"{server} {what} when it is asked for {each['name']} {kind}: {good} is expected.")
    return sentences
