# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the VRRP daemon is told to do: typed, complete, immutable. Times are microseconds.

Values and names are those of the collection's model; a file of them is read by ``config``.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from .core import machine, packet

PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE = "process", "tcp", "http", "https", "script", "file", "interface"
CHECK_TYPES = (PROCESS, TCP, HTTP, HTTPS, SCRIPT, FILE, INTERFACE)


class Tracked(NamedTuple):
    """A check that counts for an instance; weight 0 means that its failure is a FAULT."""

    name: str
    weight: int = 0


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
    command: Tuple[str, ...] = ()  # script: a program and its arguments, never a shell's line
    user: str = ""  # script: who runs it
    file: str = ""  # file: one number is in it
    interface: str = ""  # interface
    fast_interval: int = 0  # instead of the interval while outcomes speak against what is believed; 0: the interval
    every: bool = False  # whether each run is told of, and not only what is believed


class Instance(NamedTuple):
    """One Virtual Router of this host."""

    name: str
    interface: str
    vrid: int
    version: int
    family: int  # 4 or 6
    priority: int
    interval: int
    addresses: Tuple[str, ...]  # each with its prefix length
    preempt: bool = True
    preempt_delay: int = 0
    auth_pass: bytes = b""
    multicast: bool = False
    source: Optional[str] = None  # the interface's primary address where None
    peers: Tuple[str, ...] = ()
    track: Tuple[Tracked, ...] = ()
    announce_again: int = 60_000_000  # how often an Active router repeats its announcement; 0 is never
    notify: Tuple[str, ...] = ()  # a program and its arguments
    checksum: str = packet.RFC5798


class Group(NamedTuple):
    """A sync group: its instances are Active together or not at all."""

    name: str
    instances: Tuple[str, ...]
    notify: Tuple[str, ...] = ()


class Settings(NamedTuple):
    """All of it."""

    instances: Tuple[Instance, ...]
    groups: Tuple[Group, ...] = ()
    checks: Tuple[Check, ...] = ()
    status_socket: str = "/run/onprem-lb-vrrp/status.sock"
    script_user: str = "nobody"  # who runs scripts that name nobody, and notify programs


def identity(instance: Instance) -> Tuple[str, str, int, int, int]:
    """Return what makes it this Virtual Router and no other; all the rest can be changed while it runs."""
    return instance.name, instance.interface, instance.vrid, instance.version, instance.family


def group_of(wanted: Settings, name: str) -> Optional[Group]:
    """Return the sync group of an instance."""
    return next((each for each in wanted.groups if name in each.instances), None)


def router(instance: Instance, source: str, tracked: Tuple[str, ...]) -> machine.VirtualRouter:
    """Return the state machine's view of an instance.

    :param source: the address that it sends from
    :param tracked: what must have been read before it takes part
    """
    return machine.VirtualRouter(
        version=instance.version,
        priority=instance.priority,
        interval=instance.interval,
        source=source,
        preempt=instance.preempt,
        preempt_delay=instance.preempt_delay,
        tracked=frozenset(tracked),
    )


def advertisement(instance: Instance) -> packet.Advertisement:
    """Return what it sends, and expects of others, but for the priority."""
    return packet.Advertisement(
        version=instance.version,
        vrid=instance.vrid,
        priority=instance.priority,
        interval=instance.interval,
        addresses=tuple(address.partition("/")[0] for address in instance.addresses),
        auth_type=packet.PASSWORD if instance.auth_pass else packet.NO_AUTHENTICATION,
        auth_pass=instance.auth_pass,
    )
