# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last place in dnsmasq's list of name servers, which ends a lookup that nobody answers.

With `strict-order` dnsmasq asks the next name server after each SERVFAIL and REFUSED, and says nothing after the last
one: the client waits until its own next try. Here the last name server is asked once more, and its failure becomes
NOTIMP, which dnsmasq hands on, and which clients take as they take SERVFAIL. A name server that is late or silent stays
so: nothing is answered in its place.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import traceback
from typing import Dict, Optional, Tuple

from ..net.name_server import PORT
from .resolv_conf import RELAY

HANDED_ON = 4  # NOTIMP
DROPPED = (2, 5)  # SERVFAIL and REFUSED
MOST = 1000  # questions that wait
PAUSE = 1.0  # seconds after which another name server is noticed
SIZE = 65535
REPLY, RCODE = 0x80, 0x0F  # in the third and fourth byte of a message


def failed(message: bytes) -> bytes:
    """Return a message as the answer that dnsmasq hands on."""
    return message[:2] + bytes([message[2] | REPLY, message[3] & ~RCODE | HANDED_ON]) + message[4:]


def answer(message: bytes) -> bytes:
    return failed(message) if message[3] & RCODE in DROPPED else message


class Relay:
    """Asks ``upstream``, as dnsmasq writes it; nobody while that is empty."""

    def __init__(self, address: str = RELAY, port: int = PORT):
        self.upstream = ""
        self._asked = ""
        self._waiting: Dict[bytes, Tuple[str, int]] = {}  # by their numbers, which dnsmasq has drawn
        self._out: Optional[socket.socket] = None
        self._in = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._in.setblocking(False)  # select may find an error, which another call reports
        self._in.bind((address, port))

    def start(self) -> None:
        threading.Thread(target=self._run, name="relay", daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                self.step()
        except BaseException:
            traceback.print_exc()
        os._exit(1)  # systemd starts both anew

    def step(self) -> None:
        if self._asked != self.upstream:
            self._turn(self.upstream)
        ready, _writable, _broken = select.select([each for each in (self._in, self._out) if each], [], [], PAUSE)
        for each in ready:
            try:
                message, client = each.recvfrom(SIZE)
            except OSError:  # nothing, or the name server's port is closed
                continue
            if len(message) < 12:
                continue
            if each is self._in:
                self._ask(message, client)
            elif message[:2] in self._waiting:
                self._reply(answer(message), self._waiting.pop(message[:2]))

    def _ask(self, message: bytes, client: Tuple[str, int]) -> None:
        if self._out is None:
            return
        self._waiting.pop(message[:2], None)
        self._waiting[message[:2]] = client
        if len(self._waiting) > MOST:
            del self._waiting[next(iter(self._waiting))]
        try:
            self._out.send(message)
        except OSError:  # it cannot be reached from here
            self._reply(failed(message), self._waiting.pop(message[:2]))

    def _reply(self, message: bytes, client: Tuple[str, int]) -> None:
        with contextlib.suppress(OSError):  # it is gone
            self._in.sendto(message, client)

    def _turn(self, upstream: str) -> None:
        """Ask another name server from now on. Only that one's answers are heard: the socket is connected to it."""
        if self._out:
            self._out.close()
        self._out, self._asked = None, upstream
        address, _hash, port = upstream.partition("#")
        try:
            number = socket.AI_NUMERICHOST  # to look a name up would be to ask itself
            found = socket.getaddrinfo(address, port or PORT, type=socket.SOCK_DGRAM, flags=number)
            out = socket.socket(*found[0][:2])
            out.setblocking(False)
            out.connect(found[0][4])
            self._out = out
        except OSError:
            self._asked = ""  # tried again
