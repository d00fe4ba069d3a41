# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of the health gate: typed, complete, immutable. A file of them is read by ``config``."""

from __future__ import annotations

from typing import NamedTuple, Tuple

from ..checks.settings import Check

STATUS_SOCKET = "/run/onprem-lb-anycast/status.sock"
# The records of a switchover, which a reboot removes, and of a maintenance, which outlasts it.
HELD_BACK = ("/run/onprem-lb-switchover.json", "/var/lib/onprem.lb/maintenance.json")


class Vip(NamedTuple):
    """A VIP that several hosts have."""

    name: str
    address: str  # with the prefix length of a single address
    track: Tuple[str, ...]  # the names of the checks that it depends on

    @property
    def ip(self) -> str:
        return self.address.partition("/")[0]


class Settings(NamedTuple):
    """All of it."""

    vips: Tuple[Vip, ...]
    checks: Tuple[Check, ...] = ()
    interface: str = "lo"  # that has the VIPs
    held_back: Tuple[str, ...] = HELD_BACK  # files: while one of them has a record, no VIP is here
    status_socket: str = STATUS_SOCKET
    script_user: str = "nobody"  # runs the scripts that name no user
