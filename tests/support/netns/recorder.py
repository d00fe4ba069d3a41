# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records which member holds an address, and since when, as clients see it and as the members' kernels report it.

Clients follow gratuitous ARP and unsolicited Neighbour Advertisements. The recorder captures these at the client's end
of the link. The kernel stamps each frame on arrival, by the clock of time.time(), so its time is exact to well under a
millisecond, however late this process reads it.

The members' kernels report each change of an address (rtnetlink). These reports have no timestamps, so their times are
as late as this process. They show which members hold the address. A member with macvlans holds an address while the
macvlan that has it is up.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import selectors
import socket
import struct
import threading
import time
from functools import partial
from typing import FrozenSet, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import bpf, neighbours
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import PROTOCOL

from support.netns.namespaces import inside

ETH_P_ALL = 0x0003
GROUP = 1  # in the first octet of an Ethernet destination: broadcast or multicast
# Python has no names for these.
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
RECEIVE_BUFFER = 1 << 23  # bytes
RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR = 0x10, 0x100
CHANGES = {20: "added", 21: "removed"}  # RTM_NEWADDR, RTM_DELADDR
IFA_ADDRESS = 1
RTMGRP_LINK, RTM_NEWLINK, IFLA_IFNAME, IFF_RUNNING = 1, 16, 3, 0x40
# By kind of event: the set of a View that the member enters, or leaves.
STATE_CHANGES = {
    "added": ("held", True),
    "removed": ("held", False),
    "cut": ("cut", True),
    "joined": ("cut", False),
    "died": ("dead", True),
    "revived": ("dead", False),
}
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD  # of a frame, in octets 12 and 13
# What may be in a frame for `claim_in`, and for `carries_vrrp`: a jump leads over so many steps.
CLAIMS = (
    (bpf.LOAD_HALF, 0, 0, 12),
    (bpf.EQUAL, 3, 0, ARP),
    (bpf.EQUAL, 0, 3, IPV6),
    (bpf.LOAD_BYTE, 0, 0, 14 + 6),
    (bpf.EQUAL, 0, 1, socket.IPPROTO_ICMPV6),
    (bpf.RETURN, 0, 0, bpf.ALL_OF_IT),
    (bpf.RETURN, 0, 0, 0),
)
VRRP = (
    (bpf.LOAD_HALF, 0, 0, 12),
    (bpf.EQUAL, 0, 2, IPV4),
    (bpf.LOAD_BYTE, 0, 0, 14 + 9),
    (bpf.EQUAL, 3, 4, PROTOCOL),
    (bpf.EQUAL, 0, 3, IPV6),
    (bpf.LOAD_BYTE, 0, 0, 14 + 6),
    (bpf.EQUAL, 0, 1, PROTOCOL),
    (bpf.RETURN, 0, 0, bpf.ALL_OF_IT),
    (bpf.RETURN, 0, 0, 0),
)
REALTIME_PRIORITY = 20  # above that of the programs under test


class Aborted(Exception):
    """The test run was aborted during a wait."""


class Event(NamedTuple):
    at: float
    member: str
    address: str  # empty if the event affects the whole member
    kind: str  # "announced" or a key of STATE_CHANGES


class SentAdvertisement(NamedTuple):
    """An Advertisement, captured where its sender joins the bridge."""

    at: float
    member: str
    packet: bytes  # from the IP header on


class View(NamedTuple):
    """The members that hold an address at one moment, and those that cannot serve it."""

    announcer: str = ""  # the last member that announced it: clients send to this one
    held: FrozenSet[str] = frozenset()
    cut: FrozenSet[str] = frozenset()  # cut off from the link
    dead: FrozenSet[str] = frozenset()  # members without a running HAProxy

    def after(self, event):
        if event.kind == "announced":  # it has the address, even if its kernel reports that later
            return self._replace(announcer=event.member, held=self.held | {event.member})
        name, enters = STATE_CHANGES[event.kind]
        others = getattr(self, name) - {event.member}
        return self._replace(**{name: others | {event.member} if enters else others})

    @property
    def holders(self):
        return sorted(self.held - self.cut)

    @property
    def served(self):
        return self.announcer in self.held - self.cut - self.dead


class Recorder:
    """Records in its own thread, from its creation on."""

    def __init__(self, link, aborted, macvlans=None, stalled=lambda since, until: 0.0):
        """
        :param aborted: an event that ends every wait
        :param macvlans: by member, the macvlans by which it holds addresses: each has a name, a mac and an address
        :param stalled: returns for how many seconds of a period no program can be blamed, as `StallDetector.stalled`
        """
        self._stalled = stalled
        self.events, self.advertisements = [], []
        self._aborted = aborted
        self._names = {node.mac: node.name for node in link.members}
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._listen(woken, None)
        self._listen(open_capture(link.client.namespace, only=CLAIMS), self._read_announcement)
        for node in link.members:
            capture = open_capture(link.bridge, node.port, only=VRRP)
            self._listen(capture, lambda sock, name=node.name: self._read_advertisement(sock, name))
            own = (macvlans or {}).get(node.name, [])
            self._names.update({macvlan.mac: node.name for macvlan in own})
            addresses = {macvlan.name: macvlan.address for macvlan in own}
            netlink = open_netlink(node.namespace, RTMGRP_LINK if own else RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
            parse = partial(link_changes, addresses) if own else address_changes
            self._listen(netlink, lambda sock, name=node.name, parse=parse: self._read_changes(sock, name, parse))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _listen(self, sock, read):
        self._selector.register(sock, selectors.EVENT_READ, read)

    def _run(self):
        use_realtime_priority()  # because netlink messages have no timestamps
        while True:
            for key, _mask in self._selector.select():
                if key.data is None:
                    return
                try:
                    events = list(key.data(key.fileobj))
                except OSError:  # an interface is gone, which its socket reports once
                    continue
                with self._changed:
                    self.events.extend(events)
                    self._changed.notify_all()

    def close(self):
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def _read_announcement(self, sock):
        at, frame = receive_frame(sock)
        claim = claim_in(frame)
        # A unicast reply is no announcement: a client that has an entry in its neighbour table does not ask.
        if claim and claim[1] in self._names and frame[0] & GROUP:
            yield Event(at, self._names[claim[1]], claim[0], "announced")

    def _read_advertisement(self, sock, name):
        at, frame = receive_frame(sock)
        if carries_vrrp(frame):
            self.advertisements.append(SentAdvertisement(at, name, frame[14:]))
        yield from ()

    def _read_changes(self, sock, name, parse):
        at = time.time()
        for address, kind in parse(sock.recv(65536)):
            yield Event(at, name, address, kind)

    def record(self, member, kind):
        """Record a change of a member that the test has made, a key of STATE_CHANGES. Return its time."""
        at = time.time()
        with self._changed:
            self.events.append(Event(at, member, "", kind))
        return at

    def views(self, address):
        """Return each View of an address with the time at which it began, the oldest one first."""
        with self._changed:
            # Frames have the time of their arrival, other events that of their reading, so they are out of order.
            events = sorted(event for event in self.events if event.address in (address, ""))
        views = [(0.0, View())]
        for event in events:
            views.append((event.at, views[-1][1].after(event)))
        return views

    def outage(self, address, begin, end):
        """Return the longest time in milliseconds for which clients sent to a member that did not serve the address."""
        return self._longest(address, begin, end, lambda view: not view.served)

    def overlap(self, address, begin, end):
        """Return the longest time in milliseconds for which several members held the address."""
        return self._longest(address, begin, end, lambda view: len(view.holders) > 1)

    def _longest(self, address, begin, end, wrong):
        longest, since = 0.0, None
        for at, view in [*self.views(address), (end, None)]:
            if since is not None and (view is None or not wrong(view)):
                since, until = max(since, begin), min(at, end)
                longest, since = max(longest, until - since - self._stalled(since, until)), None
            elif since is None and view and wrong(view):
                since = at
        return round(longest * 1000, 1)

    def wait(self, condition, limit):
        """Wait until a condition is true, and check it at every event. Return False after the limit in seconds."""
        deadline = time.monotonic() + limit
        while not self._aborted.is_set():
            left = deadline - time.monotonic()
            with self._changed:
                if self._changed.wait_for(condition, max(0.0, min(left, 0.5))):
                    return True
            if left <= 0:
                return False
        raise Aborted


def use_realtime_priority():
    """Schedule this thread ahead of ordinary processes. Processes that it starts do not inherit that."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(REALTIME_PRIORITY))


def open_capture(namespace, interface="eth0", only=()):
    """Return a packet socket that receives the incoming frames of an interface.

    :param only: the filter of those that are wanted: the kernel discards the rest, such as a load of connections
    """
    with inside(namespace):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    if only:
        bpf.attach(sock, only)
    sock.bind((interface, ETH_P_ALL))
    return sock


def receive_frame(sock):
    """Return the kernel's timestamp of a frame, and the frame."""
    frame, ancillary, _flags, _source = sock.recvmsg(2048, socket.CMSG_SPACE(16))
    seconds, nanoseconds = next(
        struct.unpack("@ll", data) for _level, kind, data in ancillary if kind == SO_TIMESTAMPNS
    )
    return seconds + nanoseconds / 1e9, frame


def carries_vrrp(frame):
    at = {b"\x08\x00": 14 + 9, b"\x86\xdd": 14 + 6}.get(frame[12:14])
    return at is not None and frame[at : at + 1] == bytes([PROTOCOL])


def message_in(data):
    """Return the VRRP message in an IP packet."""
    return data[40:] if data[0] >> 4 == 6 else data[(data[0] & 15) * 4 :]


def claim_in(frame):
    """Return the address that the sender of a frame claims, and its MAC; None if it claims none."""
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_ICMPV6:
        return neighbours.advert_claim(frame[54:], frame[21])
    return neighbours.arp_claim(frame)


def open_netlink(namespace, groups):
    with inside(namespace):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    sock.bind((0, groups))
    return sock


def address_changes(data):
    """Yield each address in netlink messages (struct ifaddrmsg, rtnetlink(7)), and whether it was added or removed."""
    for kind, _header, attributes in messages(data, 8):
        if kind in CHANGES and IFA_ADDRESS in attributes:
            yield str(ipaddress.ip_address(attributes[IFA_ADDRESS])), CHANGES[kind]


def link_changes(addresses, data):
    """Yield the same for addresses that an interface always has: they follow its state (struct ifinfomsg).

    :param addresses: the address of each interface by name
    """
    for kind, header, attributes in messages(data, 16):
        name = attributes.get(IFLA_IFNAME, b"").rstrip(b"\x00").decode()
        if kind == RTM_NEWLINK and name in addresses:
            flags = struct.unpack_from("=I", header, 8)[0]
            yield addresses[name], "added" if flags & IFF_RUNNING else "removed"


def messages(data, size):
    """Yield the type, the header and the attributes of each netlink message. Each part is aligned to 4 bytes.

    :param size: the length of the header
    """
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        inner, end, attributes = at + 16 + size, at + length, {}
        while inner + 4 <= end:
            attribute_length, attribute = struct.unpack_from("=HH", data, inner)
            attributes[attribute] = data[inner + 4 : inner + attribute_length]
            inner += (max(attribute_length, 4) + 3) & ~3
        yield kind, data[at + 16 : at + 16 + size], attributes
        at += (max(length, 16) + 3) & ~3
