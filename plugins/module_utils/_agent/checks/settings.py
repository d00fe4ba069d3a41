# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The description of a check, for the router and the proxy. Times are microseconds."""

from __future__ import annotations

from typing import NamedTuple, Tuple

PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE = "process", "tcp", "http", "https", "script", "file", "interface"
CHECK_TYPES = (PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE)


class Check(NamedTuple):
    """A check. Which fields count besides the first six depends on its type."""

    name: str
    type: str
    interval: int = 2_000_000
    timeout: int = 2_000_000
    rise: int = 1  # successes in a row until it is up
    fall: int = 1  # failures in a row until it is down
    process: str = ""  # process: its name, as for `killall -0`
    address: str = ""  # tcp, http, https
    port: int = 0
    path: str = "/"  # http, https
    host: str = ""  # http, https: the Host header and the server name; the address where empty
    status: Tuple[int, int] = (200, 399)  # http, https: the lowest and the highest successful one
    verify: bool = False  # https: whether to verify the certificate
    ca: str = ""  # https: a file of authorities; the system's where empty
    greeting: str = ""  # tcp, http, https: sent before anything else; Latin-1
    command: Tuple[str, ...] = ()  # script: a program and its arguments; no shell
    user: str = ""  # script: the user that runs it
    file: str = ""  # file: contains one number
    interface: str = ""  # interface
    fast_interval: int = 0  # used while outcomes contradict the state; 0: the interval
    every: bool = False  # whether each run is reported, besides changes of the state
