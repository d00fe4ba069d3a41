# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One Virtual Router at run time: its settings, its state, where it sends from, and its counters."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..checks.settings import FILE, Check
from ..net import netlink
from ..runtime.loop import Timer
from . import links, rivals, settings, validation
from .core import machine, packet, tracking
from .notation import DEV

Senders = List[Tuple[str, Callable[[], Any]]]  # a destination, and the call that sends to it
ADDRESSES = "the virtual addresses"  # a reading: FAULT while the kernel refuses them, or the routes
ROUTES = "the virtual routes"


class LastAdvertisement(NamedTuple):
    """The latest Advertisement received; ``at`` in seconds since 1970."""

    source: str
    priority: int
    at: float


def link_reading(interface: str) -> str:
    return f"interface {interface}"


class Router:
    """Mutable; only the daemon changes it."""

    def __init__(self, instance: settings.Instance, wall: Callable[[], float] = time.time) -> None:
        self.wall = wall
        self.state = machine.State()
        self.since, self.reason = wall(), "start"
        self.egress = links.Egress()
        self.has_link = True  # whether something can leave its interface
        self.without_source = False  # since the source address has gone with the carrier
        self.carriers: Dict[str, links.Egress] = {}  # by name: the other interfaces that addresses and routes need
        self.timer: Optional[Timer] = None
        self.refused = ADDRESSES  # what the kernel has refused last
        self.refused_for = 0  # how long to wait before addresses that the kernel refused are tried again, microseconds
        self.last: Optional[LastAdvertisement] = None
        self.sent = self.received = self.transitions = self.takeovers = 0
        self.lower = 0  # Advertisements of a lower priority that were received while it was Active
        self.rivals = rivals.Rivals()
        self.discarded: Dict[str, int] = {}
        self.configure(instance)

    def configure(self, instance: settings.Instance) -> None:
        self.instance, self.identity = instance, settings.identity(instance)
        self.other_holders: Dict[str, List[str]] = {}  # by address: the MACs of other hosts that answer for it
        self.advertisement = settings.advertisement(instance)
        self.addresses = settings.virtual_addresses(instance)
        self.ips = frozenset(address.ip for address in self.addresses)
        self.carriers = {name: self.carriers.get(name, links.Egress()) for name in settings.other_interfaces(instance)}
        own = (self.source_reading,) if instance.dont_track_primary else (self.link_reading, self.source_reading)
        self.names = frozenset((*own, *map(link_reading, self.carriers), *(item.name for item in instance.track)))
        self._senders: Dict[Tuple[Any, int], Senders] = {}
        self.move(self.egress)

    def move(self, egress: links.Egress) -> None:
        """Send from another interface or address."""
        self.egress = egress
        source = egress.source or ("0.0.0.0" if self.instance.family == 4 else "::")
        self.machine = settings.router(self.instance, source, tuple(self.names))
        self.ours = validation.LocalInstance(self.instance, self.advertisement, source)
        self._senders.clear()

    def may_go_on_from(self, egress: links.Egress) -> bool:
        """Whether it has a source address, or has lost it with a carrier without which it may be Active.

        What manages a host's network may take an address away with the carrier, and give it back later than that.
        """
        goes_now = not egress.up and self.state.readings.get(self.source_reading) == 0
        may_go = self.instance.dont_track_primary and not egress.source
        self.without_source = may_go and (self.without_source or goes_now)
        return bool(egress.source) or self.without_source

    @property
    def name(self) -> str:
        return self.instance.name

    @property
    def active(self) -> bool:
        return self.state.name == machine.ACTIVE

    @property
    def leaving(self) -> bool:
        return self.state.name == machine.LEAVING

    @property
    def has_addresses(self) -> bool:
        """Whether the virtual addresses on the interface are there by right."""
        return self.active or self.leaving or self.state.holding

    @property
    def awaiting_timeout(self) -> bool:
        """Whether Active_Down_Timer runs."""
        return self.state.name == machine.BACKUP

    @property
    def link_reading(self) -> str:
        return link_reading(self.instance.interface)

    @property
    def source_reading(self) -> str:
        return f"the source address on {self.instance.interface}"

    @property
    def socket_key(self) -> Tuple[str, int]:
        """The key of its socket in ``Transport``."""
        return self.instance.interface, self.instance.family

    @property
    def egress_key(self) -> Tuple[str, int, Optional[str]]:
        """The arguments for ``Links.egress``."""
        return self.instance.interface, self.instance.family, self.instance.source

    def link_of(self, interface: str) -> Optional[netlink.Link]:
        """Return its own interface, or another one that carries some of its addresses, as it was last found."""
        found = self.egress if interface == self.instance.interface else self.carriers.get(interface, links.Egress())
        return found.link

    def texts(self, addresses: Iterable[settings.VirtualAddress]) -> List[str]:
        """Return how its addresses are written in its configuration."""
        own = self.instance.interface
        return [
            each.address if each.interface == own else f"{each.address} {DEV} {each.interface}" for each in addresses
        ]

    def destinations(self) -> Tuple[str, ...]:
        if self.instance.multicast:
            return (packet.GROUP if self.instance.family == 4 else packet.GROUP6,)
        return self.instance.peers

    def senders(self, port: Any, priority: int) -> Senders:
        """Return the calls that send an Advertisement to every destination; built once, used for every interval."""
        key = (port, priority)
        if key not in self._senders:
            advertisement, source = self.advertisement._replace(priority=priority), self.ours.source
            self._senders[key] = [
                (destination, port.sending(self._encode(advertisement, destination), source, destination))
                for destination in self.destinations()
            ]
        return self._senders[key]

    def _encode(self, advertisement: packet.Advertisement, destination: str) -> bytes:
        return packet.encode(advertisement, self.ours.source, destination, self.instance.checksum)

    def record(self, advertisement: packet.Advertisement, source: str) -> machine.Received:
        self.received += 1
        self.last = LastAdvertisement(source, advertisement.priority, self.wall())
        return machine.Received(advertisement, source)

    def discard(self, reason: str) -> None:
        self.discarded[reason] = self.discarded.get(reason, 0) + 1

    def changed(self, after: str, reason: str) -> None:
        """Record that it has gone over to another state."""
        self.since, self.reason, self.transitions = self.wall(), reason, self.transitions + 1
        self.takeovers += after == machine.ACTIVE
        self.other_holders = {}

    def tracker_updates(self, check: Check, up: bool, value: int) -> List[machine.TrackerUpdate]:
        """Return the tracker updates that follow from a check's result; none if this router does not track it."""
        return [
            machine.TrackerUpdate(
                item.name,
                tracking.file(item.weight, value) if check.type == FILE else tracking.check(item.weight, up),
            )
            for item in self.instance.track
            if item.name == check.name
        ]

    @property
    def priority(self) -> int:
        return machine.priority_of(self.machine, self.state)

    def report(self, held: List[settings.VirtualAddress], group: Optional[str], now: int) -> Dict[str, Any]:
        """Return its part of the status report.

        :param now: on the loop's clock
        """
        instance, state = self.instance, self.state
        because = [{"name": name, "change": change} for name, change in state.readings.items() if change != 0]
        last = self.last and {**self.last._asdict(), "age": max(0, round(self.wall() - self.last.at, 3))}
        return {
            **{key: getattr(instance, key) for key in ("name", "interface", "vrid", "version", "family", "multicast")},
            "state": state.name,
            "since": self.since,
            "reason": self.reason,
            "priority": {"configured": instance.priority, "effective": self.priority, "because": because},
            "waiting_for": sorted(self.names - state.readings.keys()),
            "addresses": self.texts(self.addresses),
            "held": self.texts(held),
            "virtual_routes": [str(route) for route in instance.virtual_routes],
            "source": self.egress.source,
            "peers": list(instance.peers),
            "group": group,
            "last_advertisement": last,
            "rivals": [
                {"source": rival.source, "priority": rival.priority, "since": rival.since}
                for rival in self.rivals.present(now)
            ],
            "other_holders": [{"address": address, "macs": list(macs)} for address, macs in self.other_holders.items()],
            "sent": self.sent,
            "received": self.received,
            "lower": self.lower,
            "transitions": self.transitions,
            "takeovers": self.takeovers,
            "discarded": dict(self.discarded),
        }
