# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HAProxy's runtime API: commands over its Unix socket, one connection each."""

from __future__ import annotations

import re
import socket
from typing import Dict, List, Sequence, Tuple

from ..checks.outcome import in_words
from . import changes
from .changes import Refused
from .haproxy_words import for_the_runtime_api
from .settings import Server

TIMEOUT = 5.0  # seconds of each step
STATE = re.compile(
    r"(?P<number>[0-9]+) \S+ [0-9]+ (?P<name>\S+) (?P<address>\S+) (?P<operation>[0-9]+)"
    r"(?: \S+){7} (?P<check>[0-9]+) .*"
)
STOPPED, CHECKED = 0, 0x04  # of the operation, and in the state of the check


class Runtime:
    """One HAProxy. Every method raises Refused if it does not answer."""

    def __init__(self, path: str, timeout: float = TIMEOUT) -> None:
        self._path, self._timeout = path, timeout
        self._numbers: Dict[str, str] = {}  # of backends, once their servers are known

    def ask(self, command: str) -> str:
        """Return the answer to a command."""
        received: List[bytes] = []
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(self._timeout)
                client.connect(self._path)
                client.sendall(f"{command}\n".encode())
                while not received or received[-1]:
                    received.append(client.recv(65536))
        except socket.timeout as fault:
            raise Refused(f"HAProxy does not answer at {self._path}: is it hung?") from fault
        except OSError as fault:
            raise Refused(f"HAProxy cannot be reached at {self._path}: {in_words(fault)}: is it running?") from fault
        return b"".join(received).decode(errors="replace").strip()

    def servers(self, backend: str) -> List[Server]:
        """Return the servers of a backend."""
        return [Server(line["name"], changes.canonical(line["address"])) for line in self._states(backend)]

    def answering(self, backend: str) -> List[Tuple[str, bool]]:
        """Return whether each server of a backend that is checked is up, by its address."""
        return [
            (changes.canonical(line["address"]), int(line["operation"]) != STOPPED)
            for line in self._states(backend)
            if int(line["check"]) & CHECKED
        ]

    def _states(self, backend: str) -> List[re.Match[str]]:
        answer = self.ask(f"show servers state {backend}")
        found = [line for line in map(STATE.fullmatch, answer.splitlines()) if line]
        if not answer.startswith("1"):
            raise Refused(f"HAProxy has no backend {backend}: {answer} Reload it, or correct haproxy.backends.")
        if found:
            self._numbers[backend] = found[0]["number"]
        return found

    def sessions(self, backend: str, name: str) -> int:
        """Return how many sessions a server has, and how many wait for it."""
        # By its number: a frontend may have the same name.
        head, *rows = self.ask(f"show stat {self._numbers.get(backend, backend)} 4 -1").splitlines() or [""]
        keys = head.lstrip("# ").split(",")
        stats = [dict(zip(keys, row.split(","))) for row in rows]
        mine = [row for row in stats if row.get("svname") == name]
        return sum(int(row.get(key) or 0) for row in mine for key in ("scur", "qcur"))

    def add(self, backend: str, server: Server, place: str, arguments: Sequence[str]) -> str:
        """Add a server and let it serve; return why HAProxy refuses it, '' if it does not."""
        it = f"{backend}/{server.name}"
        health = f"enable health {it}; " if "check" in arguments else ""
        words = " ".join(map(for_the_runtime_api, arguments))
        answer = self.ask(f"add server {it} {place} {words}; {health}enable server {it}")
        added = "New server registered" in answer
        return "" if added else (answer.splitlines() or ["it does not say why."])[0]

    def move(self, backend: str, server: Server, port: int) -> None:
        self.ask(f"set server {backend}/{server.name} addr {server.address} port {port}")

    def drain(self, backend: str, name: str) -> None:
        self.ask(f"set server {backend}/{name} state drain")

    def ready(self, backend: str, name: str) -> None:
        self.ask(f"set server {backend}/{name} state ready")

    def remove(self, backend: str, name: str) -> bool:
        """End what is left of a server's sessions and remove it; return whether it is gone."""
        it = f"{backend}/{name}"
        return "Server deleted" in self.ask(
            f"set server {it} state maint; shutdown sessions server {it}; del server {it}"
        )
