# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds an address, and since when: from outside and from inside.

From outside counts what a client goes by: a gratuitous ARP or an unsolicited Neighbour Advertisement that reaches the
client's end of the link, with the time the kernel gave the frame on arrival. However late this busy process
reads it, the time is right to well under a millisecond, and it is on the same clock as time.time().

From inside counts whether a member has the address, as its kernel reports every change (rtnetlink); these carry no
time of their own, so what is measured with them is as late as this process is: they say who holds, and that nobody
else does. A member may hold an address by an interface of its own, which has it all the time, being up.
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

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import PROTOCOL
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours

from support.netns.namespaces import inside

ETH_P_ALL = 0x0003
GROUP = 1  # in the first octet of an Ethernet destination: broadcast or multicast
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33  # Python has no names for them
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23  # nor for these
ROOM = 1 << 23  # bytes that may wait until this process has its turn
RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR = 0x10, 0x100
CHANGES = {20: "added", 21: "removed"}  # RTM_NEWADDR, RTM_DELADDR
IFA_ADDRESS = 1
RTMGRP_LINK, RTM_NEWLINK, IFLA_IFNAME, IFF_RUNNING = 1, 16, 3, 0x40
WHAT = {
    "added": ("held", True),
    "removed": ("held", False),
    "cut": ("cut", True),
    "joined": ("cut", False),
    "died": ("dead", True),
    "revived": ("dead", False),
}
READER = 20  # real-time priority, above those that are watched


class GivenUp(Exception):
    """Whoever asked for all this does not want it any more."""


class Seen(NamedTuple):
    at: float
    member: str
    address: str  # or nothing, which means the whole member
    what: str  # "announced" or one of WHAT


class Said(NamedTuple):
    """An advertisement, on its way from a member into the link."""

    at: float
    member: str
    packet: bytes  # from the IP header on


class View(NamedTuple):
    """Of one address, at one moment."""

    believed: str = ""  # the last one who announced it, to whom clients send
    held: FrozenSet[str] = frozenset()
    cut: FrozenSet[str] = frozenset()
    dead: FrozenSet[str] = frozenset()  # HAProxy, not the member

    def after(self, seen):
        if seen.what == "announced":  # whoever announces has it, even if its kernel's word comes later
            return self._replace(believed=seen.member, held=self.held | {seen.member})
        whom, enters = WHAT[seen.what]
        others = getattr(self, whom) - {seen.member}
        return self._replace(**{whom: others | {seen.member} if enters else others})

    @property
    def holders(self):
        return sorted(self.held - self.cut)

    @property
    def served(self):
        return self.believed in self.held - self.cut - self.dead


class Recorder:
    """Listens from the moment it is made, in a thread of its own."""

    def __init__(self, link, given_up, macvlans=None):
        """
        :param given_up: an event that ends every wait
        :param macvlans: by member, those that it holds addresses with: each has a name, a mac and an address
        """
        self.seen, self.said = [], []
        self._given_up = given_up
        self._names = {node.mac: node.name for node in link.members}
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._listen(woken, None)
        self._listen(frames_at(link.client.namespace), self._frame)
        for node in link.members:
            heard = frames_at(link.bridge, node.port)
            self._listen(heard, lambda heard, name=node.name: self._advertisement(heard, name))
            own = (macvlans or {}).get(node.name, [])
            self._names.update({macvlan.mac: node.name for macvlan in own})
            addresses = {macvlan.name: macvlan.address for macvlan in own}
            heard = changes_at(node.namespace, RTMGRP_LINK if own else RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
            read = partial(link_changes, addresses) if own else address_changes
            self._listen(heard, lambda heard, name=node.name, read=read: self._change(heard, name, read))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _listen(self, heard, read):
        self._selector.register(heard, selectors.EVENT_READ, read)

    def _run(self):
        hurry()  # what the kernel does not stamp must be read when it comes
        while True:
            for key, _mask in self._selector.select():
                if key.data is None:
                    return
                try:
                    found = list(key.data(key.fileobj))
                except OSError:  # an interface is gone, and says so once
                    continue
                with self._changed:
                    self.seen.extend(found)
                    self._changed.notify_all()

    def close(self):
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def _frame(self, heard):
        at, frame = stamped(heard)
        claim = claim_in(frame)
        # A reply to one who asked is no announcement: clients do not ask as long as they believe to know.
        if claim and claim[1] in self._names and frame[0] & GROUP:
            yield Seen(at, self._names[claim[1]], claim[0], "announced")

    def _advertisement(self, heard, name):
        at, frame = stamped(heard)
        if carries_vrrp(frame):
            self.said.append(Said(at, name, frame[14:]))
        yield from ()

    def _change(self, heard, name, read):
        at = time.time()
        for address, what in read(heard.recv(65536)):
            yield Seen(at, name, address, what)

    def note(self, member, what):
        """Puts down what was done to a member: one of WHAT."""
        at = time.time()
        with self._changed:
            self.seen.append(Seen(at, member, "", what))
        return at

    def views(self, address):
        """[(moment, View)]: how the view changed, oldest first."""
        with self._changed:
            # Frames are stamped on arrival and the rest when it was read: what is read late must not be first.
            seen = sorted(seen for seen in self.seen if seen.address in (address, ""))
        found = [(0.0, View())]
        for one in seen:
            found.append((one.at, found[-1][1].after(one)))
        return found

    def outage(self, address, begin, end):
        """The longest time, in milliseconds, for which clients sent to somebody who did not serve the address."""
        return self._longest(address, begin, end, lambda view: not view.served)

    def shared(self, address, begin, end):
        """The longest time, in milliseconds, for which more than one member held the address."""
        return self._longest(address, begin, end, lambda view: len(view.holders) > 1)

    def _longest(self, address, begin, end, wrong):
        longest, since = 0.0, None
        for at, view in [*self.views(address), (end, None)]:
            if since is not None and (view is None or not wrong(view)):
                longest, since = max(longest, min(at, end) - max(since, begin)), None
            elif since is None and view and wrong(view):
                since = at
        return round(longest * 1000, 1)

    def wait(self, condition, limit):
        """Looks again at every change; False when the limit has passed before the condition was met."""
        deadline = time.monotonic() + limit
        while not self._given_up.is_set():
            left = deadline - time.monotonic()
            with self._changed:
                if self._changed.wait_for(condition, max(0.0, min(left, 0.5))):
                    return True
            if left <= 0:
                return False
        raise GivenUp


def hurry():
    """From now on this thread waits for nobody who is busy, but for threads of its process that have not called this.

    What it starts does not inherit that.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(READER))


def frames_at(namespace, interface="eth0"):
    """Hears what comes in there, not what goes out."""
    with inside(namespace):
        heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    heard.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    heard.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
    heard.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    heard.bind((interface, ETH_P_ALL))
    return heard


def stamped(heard):
    """(moment, frame), by the kernel's own stamp."""
    frame, ancillary, _flags, _source = heard.recvmsg(2048, socket.CMSG_SPACE(16))
    seconds, nanoseconds = next(
        struct.unpack("@ll", data) for _level, kind, data in ancillary if kind == SO_TIMESTAMPNS
    )
    return seconds + nanoseconds / 1e9, frame


def carries_vrrp(frame):
    at = {b"\x08\x00": 14 + 9, b"\x86\xdd": 14 + 6}.get(frame[12:14])
    return at is not None and frame[at : at + 1] == bytes([PROTOCOL])


def message_in(data):
    """The VRRP message in an IP packet."""
    return data[40:] if data[0] >> 4 == 6 else data[(data[0] & 15) * 4 :]


def claim_in(frame):
    """(address, MAC) if somebody says in this frame that the address is its own."""
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_ICMPV6:
        return neighbours.advert_claim(frame[54:], frame[21])
    return neighbours.arp_claim(frame)


def changes_at(namespace, groups):
    with inside(namespace):
        heard = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    heard.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
    heard.bind((0, groups))
    return heard


def address_changes(data):
    """struct ifaddrmsg, rtnetlink(7)."""
    for kind, _header, attributes in messages(data, 8):
        if kind in CHANGES and IFA_ADDRESS in attributes:
            yield str(ipaddress.ip_address(attributes[IFA_ADDRESS])), CHANGES[kind]


def link_changes(addresses, data):
    """struct ifinfomsg, rtnetlink(7).

    :param addresses: by the name of the interface that has it all the time
    """
    for kind, header, attributes in messages(data, 16):
        name = attributes.get(IFLA_IFNAME, b"").rstrip(b"\x00").decode()
        if kind == RTM_NEWLINK and name in addresses:
            flags = struct.unpack_from("=I", header, 8)[0]
            yield addresses[name], "added" if flags & IFF_RUNNING else "removed"


def messages(data, size):
    """(type, header of this size, attributes) of each message; all is aligned to 4 and begins with its length."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        inner, end, attributes = at + 16 + size, at + length, {}
        while inner + 4 <= end:
            long, attribute = struct.unpack_from("=HH", data, inner)
            attributes[attribute] = data[inner + 4 : inner + long]
            inner += (max(long, 4) + 3) & ~3
        yield kind, data[at + 16 : at + 16 + size], attributes
        at += (max(length, 16) + 3) & ~3
