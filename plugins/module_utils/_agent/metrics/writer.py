# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps a file of metrics for node_exporter's textfile collector: anew each minute, and when an address has moved."""

from __future__ import annotations

import contextlib
import json
import os
import select
import tempfile
import time
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from ..config.host import certificate_files
from ..net.netlink import AddressGone, AddressUpdated, Lost, Netlink
from ..runtime import status_socket
from ..runtime.log import Log
from ..vrrp.settings import Settings
from . import host, keepalived, parts, served

EVERY = 60.0  # seconds; keepalived logs each request
SETTLED = 0.2  # seconds after which a router has noted that it holds an address
AT_MOST_EVERY = 1.0  # seconds, however often addresses come and go
# What a run writes for a router, the agent or keepalived.
OF_ROUTERS = ("/etc/onprem-lb-agent/vrrp.json", "/etc/systemd/system/keepalived.service.d/onprem-lb.conf")
DRILL = "/var/lib/onprem.lb/drill.json"
ENOUGH = 1024 * 1024  # bytes, more than a certificate with its chain has
MOVED = (AddressUpdated, AddressGone, Lost)

Report = Dict[str, Any]
Read = Callable[[], Optional[Report]]


class Options(NamedTuple):
    """The files of which it reports as well."""

    certificates: Sequence[str] = ()  # of haproxy's services: files, and folders of them
    haproxy_socket: str = ""  # at which haproxy says which ones it serves; '' without haproxy
    drill: str = DRILL  # which the role drill writes


class Writer:
    """Mutable: it remembers what the router has reported last."""

    def __init__(self, options: Options, read: Read, log: Log) -> None:
        """:param read: returns what the router reports, or None; may raise keepalived.Refused"""
        self._options, self._read_router, self._log = options, read, log
        self._last: Optional[Report] = None

    def text(self) -> str:
        """Return all metrics as they are now."""
        found = self._router()
        self._last = found or self._last
        answers, others = parts.read(_text)
        facts = {
            "written": time.time(),
            "router_answers": found is not None if self._last or _has_router(answers) else None,
            "parts": answers,
            "last_drill": host.last_drill(_json(self._options.drill)),
            "certificates": self._certificates(),
        }
        return host.text(facts, found or host.silent(self._last), others)

    def _certificates(self) -> Dict[str, served.Served]:
        files = [file for path in self._options.certificates for file in certificate_files(path)]
        return served.read(files, served.ask_at(self._options.haproxy_socket), _text)

    def _router(self) -> Optional[Report]:
        try:
            found = self._read_router()
        except keepalived.Refused as refused:
            self._log.fault("router", str(refused))
            return None
        self._log.cured("router", "the router answers again.")
        return found


def main(file: str, options: Options, log: Log) -> None:
    """Write the file until a signal ends this process.

    :raises OSError: it cannot be written
    """
    writer, netlink = Writer(options, router, log), Netlink()
    while True:
        replace(file, writer.text())
        time.sleep(AT_MOST_EVERY)
        wait(netlink, EVERY - AT_MOST_EVERY)


def wait(netlink: Netlink, seconds: float) -> None:
    """Return after some seconds, or as soon as an address has come or gone."""
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([netlink], [], [], left)[0]:
            return
        if any(isinstance(event, MOVED) for event in netlink.events()):
            time.sleep(SETTLED)
            return


def router() -> Optional[Report]:
    """Return what the router of this host reports, the agent or keepalived; None if neither runs."""
    with contextlib.suppress(status_socket.Refused):
        return status_socket.fetch(Settings(()).status_socket)
    return keepalived.Keepalived().report()


def replace(path: str, text: str) -> None:
    """Replace a file that all may read, so that none reads half of it."""
    handle, candidate = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o644)
            file.write(text)
        os.rename(candidate, path)
    except OSError:
        os.unlink(candidate)
        raise


def _has_router(parts_answer: Dict[str, bool]) -> bool:
    """Whether a VRRP router should run here: always, unless FRR announces the VIPs and no router was set up."""
    return "frr" not in parts_answer or any(map(os.path.exists, OF_ROUTERS))


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(ENOUGH)
    return ""


def _json(path: str) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(_text(path))
    return None
