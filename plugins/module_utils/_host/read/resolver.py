# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where this host has its names from, and whether a name server answers as it should."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import socket
from typing import Any, Dict, List, Mapping, Sequence

from ..._agent.net.name_server import PORT, TYPES, Answer, ask
from ..._agent.resolver import show
from ..._agent.resolver.keeper import forwards
from ..._shared import paths, platforms, resolver_records
from . import facts, ownership
from .reader import Reader

RESOLV_CONF = "/etc/resolv.conf"
UNITS = {"resolved": "systemd-resolved.service", "networkmanager": "NetworkManager.service"}
# Where these programs keep the name servers that they were given, by the names that a plan has for them.
UPSTREAMS = {
    "systemd-resolved": "/run/systemd/resolve/resolv.conf",
    "NetworkManager": "/run/NetworkManager/resolv.conf",
}
OUTSIDE = 2  # names of others that are looked up
LOOKUP = "15"  # seconds for one: as long as a program waits for two name servers
ELSEWHERE = {4: "192.0.2.1", 6: "2001:db8::1"}  # documentation: the address from which this host would send there


def read(reader: Reader, path: str = RESOLV_CONF, looks_up: bool = False) -> Dict[str, Any]:
    """Return what a plan needs to know.

    :param looks_up: whether this host's programs look names of others up, to be compared later
    """
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
        "answering": _answering(reader)._asdict(),
        **{name: unit in active for name, unit in UNITS.items()},
        "resolved_before": looked_up(reader, outside_names(reader)) if looks_up else {},
    }


def named(reader: Reader) -> Dict[str, List[str]]:
    """Return the addresses to which this host's resolver leads names, but those of nodes; nothing without a resolver.

    What is in its files counts: a run and a return have it read them, and its own service does that anyway.
    """
    return resolver_records.addresses(_answering(reader)) if facts.is_ours(paths.RESOLVER) else {}


def _answering(reader: Reader) -> resolver_records.Answering:
    return resolver_records.Answering(*map(reader.text, resolver_records.PATHS))


def problems(reader: Reader) -> List[str]:
    """Return a sentence for each reason why this host may not find the names of its layout, or of others.

    Without the resolver's units it is not to ask one.
    """
    ours = [unit for unit in (paths.RESOLVER, paths.KEEPER) if facts.is_ours(unit)]
    stopped = [unit for unit in ours if unit not in reader.units_in("ActiveState", ours, "active")]
    state = show.load(reader.text(show.STATE)) if paths.KEEPER in ours and paths.KEEPER not in stopped else {}
    return [*(f"{unit} does not run." for unit in stopped), *show.problems(state)]


def outside_names(reader: Reader) -> List[str]:
    """Return names that are not the layout's: the first package sources, and one that nobody has."""
    return [*reader.source_names()[:OUTSIDE], f"{random.getrandbits(64):x}.invalid"]


def looked_up(reader: Reader, names: Sequence[str]) -> Dict[str, List[str]]:
    """Return the addresses that this host's programs find for each name; nothing where it has no getent."""
    getent, timeout = reader.find("getent"), reader.find("timeout")
    if not getent or not timeout:
        return {}
    found = {name: reader.run([timeout, LOOKUP, getent, "ahosts", name])[1] for name in names}
    return {
        name: sorted({line.split()[0] for line in text.splitlines() if line.split()}) for name, text in found.items()
    }


def worse(reader: Reader, before: Mapping[str, Sequence[str]], own: Sequence[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each name that this host's programs do not find as before, and for its own ones.

    :param before: what `looked_up` returned
    :param own: the resolver's names, as `wrong_answers` takes them
    """
    wanted = {each["name"]: each["addresses"] for each in own}
    now = looked_up(reader, [*before, *wanted])
    lost = [name for name in before if before[name] and not now.get(name)]
    invented = [name for name in before if not before[name] and now.get(name) and name.endswith(".invalid")]
    unknown = [name for name in now if name in wanted and not {*now[name]} & {*wanted[name]}]
    return [
        *(f"This host no longer resolves {name}, which it did before: {before[name]}." for name in lost),
        *(f"This host resolves {name} to {now[name]}, a name that nobody has." for name in invented),
        *(f"This host resolves {name} to {now[name]}: {wanted[name]} is expected." for name in unknown),
    ]


def not_forwarded(server: str, upstreams: Sequence[str]) -> List[str]:
    """Return a sentence if a name server does not hand the answers of others on."""
    if forwards(server, upstreams) is not False:
        return []
    return [f"{server} does not answer for names of others, although one of {', '.join(upstreams)} does."]


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
