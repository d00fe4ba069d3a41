# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is checked, and how: one description for the router and the proxy. Times are microseconds."""

from __future__ import annotations

from typing import NamedTuple, Tuple

PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE = "process", "tcp", "http", "https", "script", "file", "interface"
CHECK_TYPES = (PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE)


class Check(NamedTuple):
    """Something to be watched. Which fields count besides the first six depends on the type."""

    name: str
    type: str
    interval: int = 2_000_000
    timeout: int = 2_000_000
    rise: int = 1  # successes in a row until it is up
    fall: int = 1  # failures in a row until it is down
    process: str = ""  # process: what `killall -0` would be told
    address: str = ""  # tcp, http, https
    port: int = 0
    path: str = "/"  # http, https
    host: str = ""  # http, https: the Host header and the server name; the address where empty
    status: Tuple[int, int] = (200, 399)  # http, https: the lowest and the highest that are a success
    verify: bool = False  # https: whether the certificate must be good
    ca: str = ""  # https: a file of authorities; the system's where empty
    greeting: str = ""  # tcp, http, https: what is sent before anything else, in Latin-1
    command: Tuple[str, ...] = ()  # script: a program and its arguments, never a shell's line
    user: str = ""  # script: who runs it
    file: str = ""  # file: one number is in it
    interface: str = ""  # interface
    fast_interval: int = 0  # instead of the interval while outcomes speak against what is believed; 0: the interval
    every: bool = False  # whether each run is told of, and not only what is believed
