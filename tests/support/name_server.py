# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DNS server for programs under test."""

from __future__ import annotations

import socket
import threading


class NameServer:
    """A DNS server on this host, which is silent until it is up. It has one address for every name."""

    def __init__(self, address):
        self.up = threading.Event()
        self._address = socket.inet_aton(address)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            query, peer = self._socket.recvfrom(512)
            if not query:
                return
            if self.up.is_set():
                self._socket.sendto(self._answer(query), peer)

    def _answer(self, query):
        end = query.index(b"\0", 12) + 5
        is_ipv4 = query[end - 4 : end - 2] == b"\0\1"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4" + self._address if is_ipv4 else b""
        return query[:2] + b"\x81\x80\0\1\0" + bytes([is_ipv4]) + b"\0\0\0\0" + query[12:end] + record

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()
