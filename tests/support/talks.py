# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What servers of databases, directories and mail say to a check, and what the check says to them, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import NamedTuple, Tuple

from support.netns.namespaces import inside
from support.waiting import LIMIT_S

USER = "probe"


class Talk(NamedTuple):
    """A conversation: what the server says first, then each question with its answer.

    :ivar wrong: what a server that does not work says instead of the first thing
    """

    wrong: bytes
    turns: Tuple[Tuple[bytes, bytes], ...]
    greeting: bytes = b""
    user: str = ""


def mysql(number, body):
    return len(body).to_bytes(3, "little") + bytes([number]) + body


_HANDSHAKE = (
    b"\x0a8.0.36\0\x08\0\0\0abcdefgh\0\xff\xf7\x21\x02\0\xff\xc7\x15"
    + bytes(10)
    + b"ijklmnopqrst\0mysql_native_password\0"
)
_LOGIN = b"\0\x82\0\0\0\x80\0\x01\x21" + bytes(23) + USER.encode() + b"\0\0"
_STARTING = b"SFATAL\0C57P03\0Mthe database system is starting up\0\0"
TALKS = {
    "redis": Talk(b"-LOADING Redis is loading the dataset in memory\r\n", ((b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),)),
    "smtp": Talk(
        b"421 mail.example is shutting down\r\n",
        (
            (b"EHLO localhost\r\n", b"250-mail.example\r\n250-SIZE 1000\r\n250 8BITMIME\r\n"),
            (b"QUIT\r\n", b"221 bye\r\n"),
        ),
        b"220 mail.example ESMTP\r\n",
    ),
    "ldap": Talk(
        bytes.fromhex("300c02010161070a013304000400"),  # busy
        ((bytes.fromhex("300c020101600702010304008000"), bytes.fromhex("300c02010161070a010004000400")),),
    ),
    "mysql": Talk(
        mysql(0, b"\xff\x10\x04Too many connections"),
        ((mysql(1, _LOGIN) + mysql(0, b"\x01"), mysql(2, b"\0\0\0\x02\0\0\0")),),
        mysql(0, _HANDSHAKE),
        USER,
    ),
    "pgsql": Talk(
        b"E" + (len(_STARTING) + 4).to_bytes(4, "big") + _STARTING,
        (
            (
                b"\0\0\0\x14\0\x03\0\0user\0" + USER.encode() + b"\0\0",
                b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0",
            ),
        ),
        user=USER,
    ),
}


def check_of(kind):
    return {"type": kind, **({"user": USER} if TALKS[kind].user else {})}


def answering(talk):
    """Return the behaviour of a server that works."""

    def behave(connection, heard):
        connection.sendall(talk.greeting)
        for question, answer in talk.turns:
            heard.append(received(connection, len(question)))
            if heard[-1] != question:
                return
            connection.sendall(answer)
        connection.recv(1)

    return behave


def failing(talk):
    """Return the behaviour of a server that says that it does not work, and closes: HAProxy waits for that."""

    def behave(connection, heard):
        if not talk.greeting:
            heard.append(received(connection, len(talk.turns[0][0])))
        connection.sendall(talk.wrong)

    return behave


def hanging(connection, _heard):
    """Accept, and say nothing more."""
    while connection.recv(4096):
        pass


def received(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            break
        data += more
    return data


class StandIn:
    """A server in a namespace whose behaviour a test changes; a context manager."""

    def __init__(self, namespace, port, behave):
        self.behave, self.heard = behave, []
        with inside(namespace):
            self._socket = socket.create_server(("", port), backlog=1024)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_fault):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT_S)
        self._socket.close()

    def _serve(self):
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection):
        connection.settimeout(LIMIT_S)
        with connection, contextlib.suppress(OSError):
            self.behave(connection, self.heard)
