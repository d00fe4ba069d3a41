# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon's settings: typed, complete, immutable. Times are microseconds.

Values and names are those of the collection's model; a file of them is read by ``config``.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from ..checks.settings import Check
from .core import machine, packet
from .notation import Route, split_dev


class Tracked(NamedTuple):
    """A check that counts for an instance; weight 0 means that its failure is a FAULT."""

    name: str
    weight: int = 0
    offers: bool = False  # whether the instance offers its addresses to the others while it fails


class Instance(NamedTuple):
    """One Virtual Router of this host."""

    name: str
    interface: str
    vrid: int
    version: int
    family: int  # 4 or 6
    priority: int
    interval: int
    addresses: Tuple[str, ...]  # each with its prefix length, and ``dev`` if another interface carries it
    preempt: bool = True
    preempt_delay: int = 0
    auth_pass: bytes = b""
    multicast: bool = False
    source: Optional[str] = None  # the interface's primary address where None
    peers: Tuple[str, ...] = ()
    track: Tuple[Tracked, ...] = ()
    announce_again: int = 60_000_000  # how often an Active router repeats its announcement; 0 is never
    notify: Tuple[str, ...] = ()  # a program and its arguments
    notify_user: str = ""  # runs it; the script user where empty
    dont_track_primary: bool = False  # whether its interface may be down without a FAULT
    checksum: str = packet.RFC5798
    min_ttl: int = packet.REQUIRED_HOP_LIMIT  # of unicast Advertisements; IPv6's hop limit as well
    excluded_addresses: Tuple[str, ...] = ()  # the same of either family; Advertisements do not have them
    virtual_routes: Tuple[Route, ...] = ()


class VirtualAddress(NamedTuple):
    """An address that a Virtual Router has while it is Active."""

    address: str  # with its prefix length
    interface: str  # that carries it

    @property
    def ip(self) -> str:
        return self.address.partition("/")[0]

    @property
    def family(self) -> int:
        return 6 if ":" in self.address else 4


class Group(NamedTuple):
    """A sync group: its instances are Active together or not at all."""

    name: str
    instances: Tuple[str, ...]
    notify: Tuple[str, ...] = ()
    notify_user: str = ""


class Settings(NamedTuple):
    """All of it."""

    instances: Tuple[Instance, ...]
    groups: Tuple[Group, ...] = ()
    checks: Tuple[Check, ...] = ()
    status_socket: str = "/run/onprem-lb-vrrp/status.sock"
    script_user: str = "nobody"  # runs notify programs, and scripts that name no user
    startup_delay: int = 0  # after the start of the agent, before its routers take part


Identity = Tuple[str, int, int, int]


def identity(instance: Instance) -> Identity:
    """Return what identifies a Virtual Router on the link; everything else can change while it runs, its name too."""
    return instance.interface, instance.vrid, instance.version, instance.family


def group_of(settings: Settings, name: str) -> Optional[Group]:
    """Return the sync group of an instance."""
    return next((each for each in settings.groups if name in each.instances), None)


def virtual_addresses(instance: Instance) -> Tuple[VirtualAddress, ...]:
    """Return all addresses of an instance, the advertised ones first."""
    texts = map(split_dev, (*instance.addresses, *instance.excluded_addresses))
    return tuple(VirtualAddress(address, dev or instance.interface) for address, dev in texts)


def other_interfaces(instance: Instance) -> Tuple[str, ...]:
    """Return the interfaces besides its own that its addresses and routes need."""
    named = [each.interface for each in virtual_addresses(instance)]
    named += [route.dev for route in instance.virtual_routes]
    return tuple(name for name in dict.fromkeys(named) if name != instance.interface)


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
    """Return what it sends, and expects of other routers except for the priority."""
    return packet.Advertisement(
        version=instance.version,
        vrid=instance.vrid,
        priority=instance.priority,
        interval=instance.interval,
        addresses=tuple(address.partition("/")[0] for address in instance.addresses),
        auth_type=packet.PASSWORD if instance.auth_pass else packet.NO_AUTHENTICATION,
        auth_pass=instance.auth_pass,
    )
