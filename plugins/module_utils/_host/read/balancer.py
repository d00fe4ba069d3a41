# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a running balancer says of its servers: haproxy at its stats socket, the agent in its report."""

from __future__ import annotations

import csv
import re
import socket
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

UP, LATE, DOWN, MAINT, DRAIN, UNCHECKED = "up", "late", "down", "maint", "drain", "unchecked"
NEW = "not checked yet"  # a balancer that has just started takes each server for up
STATS_SOCKET = re.compile(r"^\s*stats socket (/\S+)", re.MULTILINE)
FALLBACK = re.compile(r"^\s*use_backend (\S+) if .*\{ nbsrv\((\S+)\) eq 0 \}$", re.MULTILINE)
SERVERS_ONLY = b"show stat -1 4 -1\n"  # of all proxies, of type server, with any id
# How the status of a server begins in haproxy's statistics; of one that rises or falls "UP 1/2" and "DOWN 1/2".
SERVING = {UP, LATE, UNCHECKED}
STATUSES = {"UP": UP, "DOWN": DOWN, "MAINT": MAINT, "DRAIN": DRAIN, "NOLB": DRAIN, "no": UNCHECKED}

Server = Tuple[str, str, str]  # its service, its name, its state


def summary(servers: Iterable[Server]) -> Dict[str, Any]:
    """Return how many servers there are, how many of them get connections, and which do not, or only if no other does.

    A late one counts as up, because it gets connections while no other does.
    """
    every = list(servers)
    others = [{"service": service, "name": name, "state": state} for service, name, state in every]
    others = [server for server in others if server["state"] not in (UP, UNCHECKED)]
    late = sum(server["state"] == LATE for server in others)
    return {"total": len(every), "up": len(every) - len(others) + late, "others": others}


def unserved(servers: Iterable[Server]) -> List[str]:
    """Return a sentence for each service of which no server is known to get connections."""
    states = {service: found for service, found in _by_service(servers).items() if not SERVING.intersection(found)}
    return [
        f"Whether a server of {service} is up is not known: the first check of {found.count(NEW)} has not ended yet."
        if NEW in found
        else f"No server of {service} is up (0 of {len(found)}), so its clients get no answer."
        for service, found in states.items()
    ]


def is_known(servers: Iterable[Server]) -> bool:
    """Return whether the checks have said of each service if a server of it gets connections."""
    return all(SERVING.intersection(found) or NEW not in found for found in _by_service(servers).values())


def _by_service(servers: Iterable[Server]) -> Dict[str, List[str]]:
    states: Dict[str, List[str]] = {}
    for service, _name, state in servers:
        states.setdefault(service, []).append(state)
    return states


def stats_socket(config: str) -> str:
    """Return the path in haproxy.cfg; '' if there is none."""
    found = STATS_SOCKET.search(config)
    return found[1] if found else ""


def of_statistics(text: str, config: str = "") -> List[Server]:
    """Return the servers in what `show stat` prints. Those that are up in the fallback of a service alone are late.

    :param config: haproxy.cfg, which names the fallbacks
    """
    states = {(row["pxname"], row["svname"]): _state_of(row) for row in _rows(text)}
    fallbacks = {service: fallback for fallback, service in FALLBACK.findall(config)}

    def state(service: str, name: str) -> str:
        second = states.get((fallbacks.get(service, ""), name), DOWN)
        if states[service, name] != DOWN or second not in (UP, NEW):
            return states[service, name]
        return LATE if second == UP else NEW

    every = [(service, name) for service, name in states if service not in fallbacks.values()]
    return [(service, name, state(service, name)) for service, name in every]


def _rows(text: str) -> List[Dict[str, str]]:
    """Return the rows that have all that is asked for: something else than haproxy may answer."""
    try:
        found = list(csv.DictReader(text.lstrip("# ").splitlines()))
    except csv.Error:
        return []
    return [row for row in found if all((row.get(key) or "").strip() for key in ("pxname", "svname", "status"))]


def _state_of(row: Mapping[str, str]) -> str:
    state = STATUSES.get(row["status"].split()[0], DOWN)
    # With a star, while the first check is under way.
    return NEW if state == UP and (row.get("check_status") or "").endswith("INI") else state


def of_report(report: Dict[str, Any]) -> List[Server]:
    """Return the servers in a report of the agent."""
    return [
        (service["name"], server["name"], _reported(server))
        for service in report.get("services", [])
        for server in service["servers"]
    ]


def _reported(server: Mapping[str, Any]) -> str:
    is_assumed = server["state"] in (UP, LATE) and not server.get("certain", True)  # an older agent does not say
    return NEW if is_assumed else str(server["state"])


def ask(path: str, timeout: float = 2.0) -> Optional[str]:
    """Return haproxy's statistics of its servers; None if it does not answer."""
    received: List[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timeout)
        try:
            client.connect(path)
            client.sendall(SERVERS_ONLY)
            while not received or received[-1]:
                received.append(client.recv(65536))
        except OSError:
            return None
    return b"".join(received).decode(errors="replace") or None
