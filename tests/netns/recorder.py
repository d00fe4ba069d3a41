# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds an address, and since when: from outside and from inside.

From outside counts what a client goes by: a gratuitous ARP or an unsolicited Neighbour Advertisement that reaches the
client's end of the link, with the time the kernel gave the frame on arrival. However late this busy process
reads it, the time is right to well under a millisecond, and it is on the same clock as time.time().

From inside counts whether a member has the address, as its kernel reports every change (rtnetlink); these carry no
time of their own, so nothing is measured with them: they say who holds, and that nobody else does.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import selectors
import socket
import struct
import threading
import time
from typing import FrozenSet, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils import _neighbours

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 0x0003
GROUP = 1  # in the first octet of an Ethernet destination: broadcast or multicast
SO_TIMESTAMPNS = 35  # Python has no name for it
RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR = 0x10, 0x100
CHANGES = {20: "added", 21: "removed"}  # RTM_NEWADDR, RTM_DELADDR
IFA_ADDRESS = 1
WHAT = {
    "added": ("held", True),
    "removed": ("held", False),
    "cut": ("cut", True),
    "joined": ("cut", False),
    "died": ("dead", True),
    "revived": ("dead", False),
}
_libc = ctypes.CDLL(None, use_errno=True)


class GivenUp(Exception):
    """Whoever asked for all this does not want it any more."""


class Seen(NamedTuple):
    at: float
    member: str
    address: str  # or nothing, which means the whole member
    what: str  # "announced" or one of WHAT


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


@contextlib.contextmanager
def inside(namespace):
    """Sockets made here belong to the namespace, also afterwards. Only this thread enters it."""
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        _enter(there)
        try:
            yield
        finally:
            _enter(home)


def _enter(namespace):
    if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Recorder:
    """Listens from the moment it is made, in a thread of its own."""

    def __init__(self, link, given_up):
        """:param given_up: an event that ends every wait"""
        self.seen = []
        self._given_up = given_up
        self._names = {node.mac: node.name for node in link.members}
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._listen(woken, None)
        self._listen(frames_at(link.client.namespace), self._frame)
        for node in link.members:
            heard = addresses_of(node.namespace)
            self._listen(heard, lambda heard, name=node.name: self._address(heard, name))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _listen(self, heard, read):
        self._selector.register(heard, selectors.EVENT_READ, read)

    def _run(self):
        while True:
            for key, _mask in self._selector.select():
                if key.data is None:
                    return
                found = list(key.data(key.fileobj))
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
        frame, ancillary, _flags, _source = heard.recvmsg(2048, socket.CMSG_SPACE(16))
        stamps = [struct.unpack("@ll", data) for _level, kind, data in ancillary if kind == SO_TIMESTAMPNS]
        claim = claim_in(frame)
        # A reply to one who asked is no announcement: clients do not ask as long as they believe to know.
        if claim and claim[1] in self._names and frame[0] & GROUP:
            seconds, nanoseconds = stamps[0]
            yield Seen(seconds + nanoseconds / 1e9, self._names[claim[1]], claim[0], "announced")

    def _address(self, heard, name):
        at = time.time()
        for address, what in address_changes(heard.recv(65536)):
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
        longest, since = 0.0, None
        for at, view in [*self.views(address), (end, None)]:
            if since is not None and (view is None or view.served):
                longest, since = max(longest, min(at, end) - max(since, begin)), None
            elif since is None and view and not view.served:
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


def frames_at(namespace):
    with inside(namespace):
        heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    heard.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    heard.bind(("eth0", ETH_P_ALL))
    return heard


def claim_in(frame):
    """(address, MAC) if somebody says in this frame that the address is its own."""
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_ICMPV6:
        return _neighbours.advert_claim(frame[54:], frame[21])
    return _neighbours.arp_claim(frame)


def addresses_of(namespace):
    with inside(namespace):
        heard = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    heard.bind((0, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR))
    return heard


def address_changes(data):
    """Reads rtnetlink(7): messages of struct nlmsghdr, struct ifaddrmsg and attributes, each aligned to 4."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        inner, end = at + 24, at + length
        while kind in CHANGES and inner + 4 <= end:
            size, attribute = struct.unpack_from("=HH", data, inner)
            if attribute == IFA_ADDRESS:
                yield str(ipaddress.ip_address(data[inner + 4 : inner + size])), CHANGES[kind]
            inner += (size + 3) & ~3
        at += (length + 3) & ~3
