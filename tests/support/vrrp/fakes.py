# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A fake host for the VRRP daemon: a network without a kernel, checks, a log, and a clock that the test moves.

The journal has a line for each action of the daemon, in order: ``send 100 to 192.0.2.2``, ``add 192.0.2.10/32 to
eth0``, ``announce 192.0.2.10 on eth0``, ``run /bin/tell INSTANCE front MASTER 100``, ``says front: Backup to ...``.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import os
from functools import partial

from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ip import Datagram
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import loop
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import daemon, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

SECOND = loop.MILLION
EPOCH = 1_700_000_000  # when the clock shows 0
OWN, OTHER, THIRD, VIP = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.10"
FRONT = settings.Instance("front", "eth0", 51, 2, 4, 100, SECOND, (f"{VIP}/32",), peers=(OTHER,))
DOWN_INTERVAL = 3 + 156 / 256  # of FRONT: seconds of silence until it becomes Active
BACK = FRONT._replace(name="back", interface="eth1", vrid=52, addresses=("198.51.100.10/32",), peers=("198.51.100.2",))
SIX = FRONT._replace(
    name="six",
    version=3,
    family=6,
    addresses=("fe80::10/128", "2001:db8::10/64"),
    peers=(),
    multicast=True,
)


class Loop:
    """An event loop with a fake clock, which moves only in ``let`` and ``stall``."""

    def __init__(self, readable):
        """:param readable: returns whether a descriptor is readable"""
        self.clock = 5 * SECOND
        self.watched = {}
        self._readable = readable
        self._timers = []
        self._serial = itertools.count()

    def now(self):
        return self.clock

    def at(self, moment, callback):
        timer = loop.Timer(moment, callback)
        heapq.heappush(self._timers, (moment, next(self._serial), timer))
        return timer

    def after(self, delay, callback):
        return self.at(self.clock + delay, callback)

    def watch(self, descriptor, callback, events=loop.READ):
        self.watched[descriptor] = callback

    def forget(self, descriptor):
        self.watched.pop(descriptor, None)

    @property
    def waiting(self):
        """The number of timers that are set."""
        return sum(timer.callback is not None for _at, _serial, timer in self._timers)

    def let(self, seconds=0.0):
        """Let time pass. Due timers fire before sockets are read, even after a stall; the real loop reads first."""
        end = self.clock + round(seconds * SECOND)
        while True:
            if self._fire() or self._read():
                continue
            if not self._timers or self._timers[0][0] > end:
                break
            self.clock = self._timers[0][0]
        self.clock = max(self.clock, end)

    def stall(self, seconds):
        """Let time pass without doing anything."""
        self.clock += round(seconds * SECOND)

    def _fire(self):
        fired = False
        while self._timers and self._timers[0][0] <= self.clock:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback:
                timer.callback()
                fired = True
        return fired

    def _read(self):
        ready = [descriptor for descriptor in self.watched if self._readable(descriptor)]
        for descriptor in ready:
            if descriptor in self.watched:
                self.watched[descriptor](loop.READ)
        return bool(ready)


class Netlink:
    """Links and addresses. Each change is an event, also a change by the daemon itself."""

    def __init__(self, journal):
        self.journal = journal
        self.refused = {}  # address -> errno
        self.kept = set()  # addresses that must not be deleted
        self.pending = []
        self.up = {}  # name -> netlink.Link
        self.there = {}  # (index, address, prefix) -> netlink.Address
        self.ways = set()  # routes
        self.followed = False  # whether there are events about routes
        self.asked_in_vain = []  # neighbour_table.Neighbour

    def links(self):
        return list(self.up.values())

    def addresses(self):
        return list(self.there.values())

    def adding(self, index, address):
        return partial(self._add, index, address)

    def _add(self, index, address):
        if address in self.refused:
            self.journal.append(f"refuses {address}")
            raise OSError(self.refused[address], os.strerror(self.refused[address]))
        self.journal.append(f"add {address} to {self._name(index)}")
        if self._is_present(index, address):
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        self.put(address, self._name(index))

    def _is_present(self, index, address):
        """IPv6 has an address once on an interface, IPv4 once for each prefix length."""
        text, _slash, prefix = address.partition("/")
        return any(key[:2] == (index, text) and (":" in text or key[2] == int(prefix)) for key in self.there)

    def delete(self, index, address):
        if address in self.kept:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        self.journal.append(f"delete {address} from {self._name(index)}")
        if not self.take_away(address, self._name(index)) and self._name(index) != "nowhere":
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))

    def routes(self):
        return sorted(self.ways)

    def unanswered(self):
        return self.asked_in_vain

    def follow_routes(self):
        self.followed = True

    def adding_route(self, route):
        return partial(self._add_route, route)

    def _add_route(self, route):
        if route.to in self.refused:
            raise OSError(self.refused[route.to], os.strerror(self.refused[route.to]))
        if route in self.ways:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        self.journal.append(f"add route to {route.to}")
        self.ways.add(route)

    def delete_route(self, route):
        if route.to in self.kept:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        self.journal.append(f"delete route to {route.to}")
        self.ways.discard(route)

    def fileno(self):
        return 1000

    def events(self):
        found, self.pending = self.pending, []
        return found

    def _name(self, index):
        return next((link.name for link in self.up.values() if link.index == index), "nowhere")

    # Changes by others.

    def link(self, name, index, up=True, mac=bytes(6)):
        """Add an interface, or change it."""
        for known in [known for known, link in self.up.items() if link.index == index]:
            del self.up[known]
        self.up[name] = netlink.Link(index, name, up, mac)
        self.pending.append(netlink.LinkUpdated(self.up[name]))

    def unlink(self, name):
        link = self.up.pop(name)
        for key in [key for key in self.there if key[0] == link.index]:
            self.pending.append(netlink.AddressGone(self.there.pop(key)))
        self.pending.append(netlink.LinkGone(link))

    def put(self, address, name="eth0", usable=True):
        text, _slash, prefix = address.partition("/")
        key = self.up[name].index, text, int(prefix)
        changed = netlink.Address(*key, usable)
        if self.there.get(key) != changed:
            self.there[key] = changed
            self.pending.append(netlink.AddressUpdated(changed))

    def take_away(self, address, name="eth0"):
        text, _slash, prefix = address.partition("/")
        index = self.up[name].index if name in self.up else 0
        gone = self.there.pop((index, text, int(prefix)), None)
        if gone:
            self.pending.append(netlink.AddressGone(gone))
        return gone

    def drop_route(self, route):
        self.ways.remove(route)
        self.pending += [netlink.RouteGone(route)] if self.followed else []

    def overrun(self):
        """Lose all pending events."""
        self.pending = [netlink.Lost()]


class Port:
    def __init__(self, journal, interface, index, family, multicast, number):
        self.journal, self.interface, self.index, self.family = journal, interface, index, family
        self.multicast, self.number = multicast, number
        self.inbox = []
        self.unreachable = set()
        self.closed = False
        self.vrids = set()

    def fileno(self):
        return self.number

    def listen_for(self, vrids):
        self.vrids = set(vrids)

    def receive(self):
        assert not self.closed
        return self.inbox.pop(0) if self.inbox else None

    def sending(self, message, source, destination):
        return partial(self._send, message, source, destination)

    def _send(self, message, source, destination):
        assert not self.closed
        if destination in self.unreachable:
            raise OSError(101, os.strerror(101))
        advertisement = packet.decode(message, source, destination)
        assert not isinstance(advertisement, packet.Discard), advertisement
        self.heard(advertisement)
        self.journal.append(f"send {advertisement.priority} to {destination}")

    def heard(self, advertisement):
        """A hook for tests that need more than the journal's line."""

    def close(self):
        self.closed = True


class Prober:
    """Probes a link on which the other hosts answer that are in ``answers``: address -> MACs."""

    def __init__(self, network, link, family, number):
        self.network, self.link, self.family, self.number = network, link, family, number
        self.arrived, self.closed = [], False

    def fileno(self):
        return self.number

    def probe(self, address):
        if self.network.unprobed:
            raise self.network.unprobed
        self.network.probes.append((self.link.name, address))
        self.arrived += [(address, mac) for mac in self.network.answers.get(address, ())]

    def replies(self):
        assert not self.closed
        found, self.arrived = self.arrived, []
        return found

    def close(self):
        self.closed = True


class Network:
    def __init__(self, journal):
        self.journal = journal
        self.netlink = Netlink(journal)
        self.ports = []
        self.shut = None  # the errno of opening a port, or None
        self.mute = None  # the errno of an announcement, or None
        self.probers, self.probes, self.answers = [], [], {}
        self.unprobed = None  # what a probe raises, if anything
        self.room = None  # how many announcements the interface's queue takes, or None for all

    def open_socket(self, interface, index, family, multicast):
        if self.shut:
            raise OSError(self.shut, os.strerror(self.shut))
        self.ports.append(Port(self.journal, interface, index, family, multicast, len(self.ports)))
        return self.ports[-1]

    def announcing(self, link, address):
        return partial(self._announce, link, address)

    def _announce(self, link, address):
        if self.mute:
            raise OSError(self.mute, os.strerror(self.mute))
        if self.room == 0:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self.room = self.room and self.room - 1
        self.journal.append(f"announce {address} on {link.name}")

    def ask(self, link, source, address):
        if self.mute:
            raise OSError(self.mute, os.strerror(self.mute))
        self.journal.append(f"ask on {link.name} for the MAC of {address} from {source}")

    def prober(self, link, family):
        self.probers.append(Prober(self, link, family, 2000 + len(self.probers)))
        return self.probers[-1]

    @property
    def open_ports(self):
        return [port for port in self.ports if not port.closed]

    def readable(self, descriptor):
        if descriptor == self.netlink.fileno():
            return bool(self.netlink.pending)
        if descriptor >= 2000:
            return bool(self.probers[descriptor - 2000].arrived)
        return bool(self.ports[descriptor].inbox) and not self.ports[descriptor].closed


class Checks:
    def __init__(self, journal):
        self.journal = journal
        self.applied = []

    def apply(self, checks, script_user):
        self.applied.append((tuple(checks), script_user))

    def run(self, command, user):
        self.journal.append(f"run {' '.join(command)} as {user}")


class Log:
    """Like ``log.Log``: it logs a fault again only if its text differs."""

    def __init__(self, journal):
        self.journal = journal
        self.faults = {}

    def info(self, text):
        self.journal.append(f"says {text}")

    warning = info

    def fault(self, key, text):
        if self.faults.get(key) != text:
            self.faults[key] = text
            self.info(text)

    def cured(self, key, text):
        if self.faults.pop(key, None):
            self.info(text)


class Host:
    """A daemon on a host with eth0 (192.0.2.1) and eth1 (198.51.100.1), both with a link-local address."""

    def __init__(self):
        self.journal = []
        self.network = Network(self.journal)
        self.netlink = self.network.netlink
        self.loop = Loop(self.network.readable)
        self.checks, self.log = Checks(self.journal), Log(self.journal)
        self.daemon = daemon.Daemon(
            daemon.Dependencies(
                self.loop, self.network, self.checks, self.log, lambda: EPOCH + self.loop.now() / SECOND
            )
        )
        for index, name, own, own6 in ((2, "eth0", OWN, "fe80::1"), (3, "eth1", "198.51.100.1", "fe80::2")):
            self.netlink.link(name, index)
            self.netlink.put(f"{own}/24", name)
            self.netlink.put(f"{own6}/64", name)

    def start(self, *instances, **others):
        self.daemon.start(settings.Settings(instances or (FRONT,), **others))
        self.let()
        return self

    def apply(self, *instances, **others):
        self.daemon.apply(settings.Settings(instances, **others))
        self.let()

    def let(self, seconds=0.0):
        self.loop.let(seconds)

    def activate(self):
        """Let time pass without Advertisements until the routers are Active; clear the journal."""
        self.let(DOWN_INTERVAL)
        assert set(self.states.values()) == {"Active"}, self.states
        self.let(6)  # for the second round of announcements
        self.done()
        return self

    def done(self):
        """Return the journal since the last call. Repeated lines become one line with their number."""
        lines = []
        for line, same in itertools.groupby(self.journal):
            count = len(list(same))
            lines.append(f"{line} x{count}" if count > 1 else line)
        self.journal.clear()
        return lines

    def acts(self):
        """Return the journal without the log's lines."""
        return [line for line in self.done() if not line.startswith("says ")]

    def says(self):
        """Return the log's lines of the journal."""
        return [line[5:] for line in self.done() if line.startswith("says ")]

    def deliver(
        self, priority=100, source=OTHER, destination=OWN, of=FRONT, hop_limit=255, mangle=None, age=0, **changes
    ):
        """Put an Advertisement into the inbox of a port, without reading it."""
        advertisement = settings.advertisement(of)._replace(priority=priority, **changes)
        message = packet.encode(advertisement, source, destination)
        datagram = Datagram(source, destination, hop_limit, mangle(message) if mangle else message, True, age)
        self.port(of.interface, of.family).inbox.append(datagram)

    def hears(self, priority=100, source=OTHER, destination=OWN, **others):
        self.deliver(priority, source, destination, **others)
        self.let()

    def port(self, interface="eth0", family=4):
        return next(port for port in self.network.open_ports if (port.interface, port.family) == (interface, family))

    def finds(self, name, up=True, value=0, detail=""):
        """Report the result of a check."""
        self.daemon.take_result(Result(name, up, value, detail))
        self.let()

    @property
    def states(self):
        return {name: router.state.name for name, router in self.daemon.routers.items()}

    @property
    def state(self):
        (state,) = self.states.values()
        return state

    def report(self, name="front"):
        return next(each for each in self.daemon.report()["instances"] if each["name"] == name)

    @property
    def held(self):
        """The virtual addresses that the host has."""
        own = (OWN, "198.51.100.1", "fe80::1", "fe80::2")
        return sorted(f"{address}/{prefix}" for _index, address, prefix in self.netlink.there if address not in own)
