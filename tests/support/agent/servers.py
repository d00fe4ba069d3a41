# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on this host that behave as a test says, well or badly."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

from support.waiting import LIMIT_S


class Server:
    """Serves one connection after the other in a thread. ``heard`` has the request of each."""

    def __init__(self, behave) -> None:
        self.heard = []
        self._behave = behave
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_fault) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT_S)
        self._socket.close()
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return  # the socket was closed
            connection.settimeout(LIMIT_S)
            with connection, contextlib.suppress(OSError):
                self._behave(connection, self.heard)


def hear(connection, heard) -> None:
    """Read a request up to its empty line."""
    request = b""
    while b"\r\n\r\n" not in request:
        more = connection.recv(4096)
        if not more:
            break
        request += more
    heard.append(request)


def answering(*parts):
    """Return a behaviour: read a request, answer in parts, close."""

    def behave(connection, heard):
        hear(connection, heard)
        for part in parts:
            connection.sendall(part)

    return behave


def silent(connection, _heard) -> None:
    """Send nothing until the client closes."""
    while connection.recv(4096):
        pass


def secured(certificate, behave, names=None, shut=True):
    """A behaviour inside TLS; ``names`` gathers the server names that clients tell."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    if names is not None:
        context.sni_callback = lambda _connection, name, _context: names.append(name)

    def shake_hands(connection, heard):
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.settimeout(LIMIT_S)
            behave(secure, heard)
            if shut:
                secure.unwrap()

    return shake_hands
