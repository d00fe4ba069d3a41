# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The description of a check, for the router and the proxy. Times are microseconds."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE = "process", "tcp", "http", "https", "script", "file", "interface"
HAPROXY = "haproxy"  # its runtime socket at a port
# Servers that are asked in their own protocol.
MYSQL, PGSQL, REDIS, LDAP, SMTP = PROTOCOLS = ("mysql", "pgsql", "redis", "ldap", "smtp")
CHECK_TYPES = (PROCESS, TCP, HTTP, HTTPS, HAPROXY, SCRIPT, FILE, INTERFACE)
NETWORK_TYPES = (TCP, HTTP, HTTPS, HAPROXY)

GOOD_STATUS = ("200-399",)


class Step(NamedTuple):
    """One connection of a check, and what is asked through it."""

    type: str = TCP
    port: int = 0
    path: str = "/"  # http, https
    host: str = ""  # http, https: the Host header; the address where empty. smtp: who asks
    sni: str = ""  # https: the server name; the host where empty
    status: Tuple[str, ...] = GOOD_STATUS  # http, https: the successful ones, codes and ranges
    greeting: str = ""  # sent before anything else; Latin-1
    method: str = "GET"  # http, https
    user: str = ""  # mysql, pgsql: who logs in


class Check(NamedTuple):
    """A check. Which fields count besides the first six depends on its type."""

    name: str
    type: str
    interval: int = 2_000_000
    timeout: int = 2_000_000
    rise: int = 1  # successes in a row until it is up
    fall: int = 1  # failures in a row until it is down
    process: str = ""  # process: its name, as for `killall -0`
    address: str = ""  # tcp, http, https, haproxy
    port: int = 0
    path: str = "/"  # from here to the status: as in a step
    host: str = ""
    sni: str = ""
    status: Tuple[str, ...] = GOOD_STATUS
    verify: bool = False  # https: whether to verify the certificate
    ca: str = ""  # https: a file of authorities; the system's where empty
    greeting: str = ""  # tcp, http, https: sent before anything else; Latin-1
    command: Tuple[str, ...] = ()  # script: a program and its arguments; no shell
    user: str = ""  # script: the user that runs it; mysql, pgsql: who logs in
    file: str = ""  # file: contains one number
    interface: str = ""  # interface
    fast_interval: int = 0  # used while outcomes contradict the state; 0: the interval
    every: bool = False  # whether each run is reported, besides changes of the state
    steps: Tuple[Step, ...] = ()  # tcp, http, https: what is checked in sequence, instead of the one port
    connect_timeout: int = 0  # tcp, http, https: for the connection alone; 0: the timeout
    method: str = "GET"  # http, https

    @property
    def sequence(self) -> Tuple[Step, ...]:
        """The connections of a check over the network."""
        return self.steps or (Step(*(getattr(self, field) for field in Step._fields)),)

    @classmethod
    def from_json(cls, fields: List[Any]) -> Check:
        """Return a check that was a message: JSON has no tuples."""
        check = cls._make(map(_tuples, fields))
        return check._replace(steps=tuple(map(Step._make, check.steps)))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
