# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks databases, directories and mail servers for an answer in their own protocol, with the bytes that HAProxy sends.

What is a good answer to HAProxy is one here. A check logs in where HAProxy's does, with a user who has no password.
"""

from __future__ import annotations

from typing import Callable, Dict, Generator

from .network import BadResponse, Dialogue, Steps, Stream
from .settings import LDAP, MYSQL, PGSQL, REDIS, SMTP

Receiving = Generator[int, None, bytes]

PING, PONG = b"*1\r\n$4\r\nPING\r\n", b"+PONG"
MAX_LINE = 4096
MAX_MESSAGE = 65536  # bytes; an answer to a login has some hundred
SHOWN = 60  # characters of a server's own words

# LDAPv3: message 1 binds without a name and a password; what answers is message 1, a BindResponse.
BIND = bytes.fromhex("300c020101600702010304008000")
BOUND, RESULT_CODE = bytes.fromhex("02010161"), b"\x0a\x01"

# MySQL's client/server protocol, 4.1: capabilities, the largest packet, the character set, and what is reserved.
LOGIN = bytes.fromhex("008200000080000121") + bytes(23)
QUIT = bytes.fromhex("0100000001")
HANDSHAKE, MYSQL_ERROR = 10, 0xFF

# PostgreSQL's message of version 3.0 that starts a session, and which requests to authenticate may answer it.
STARTUP = bytes.fromhex("00030000")
AUTHENTICATIONS = (0, 2, 3, 4, 5, 6, 7, 9, 10)


def dialogue(kind: str, user: str, host: str) -> Dialogue:
    """Return a dialogue in the protocol of a type of check.

    :param user: who logs in, for MySQL and PostgreSQL
    :param host: by which name the check introduces itself to a mail server
    """

    def converse(stream: Stream) -> Steps:
        stream.expect("no answer")
        return (yield from DIALOGUES[kind](stream, {SMTP: host or "localhost"}.get(kind, user).encode()))

    return converse


def _redis(stream: Stream, _name: bytes) -> Steps:
    yield from stream.send(PING)
    answer = yield from _line(stream)
    if answer.rstrip() != PONG:
        raise _unexpected(answer)
    return "PONG"


def _smtp(stream: Stream, name: bytes) -> Steps:
    for said in (b"", b"EHLO %s\r\n" % name, b"QUIT\r\n"):
        yield from stream.send(said)
        answer = yield from _line(stream)
        while answer[3:4] == b"-":
            answer = yield from _line(stream)
        if not (answer[:1] == b"2" and answer[:3].isdigit()):
            raise _unexpected(answer)
    return f"status {answer[:3].decode()}"


def _ldap(stream: Stream, _name: bytes) -> Steps:
    yield from stream.send(BIND)
    message = yield from _ber(stream)
    # A BindResponse has its own length, and begins with the result's code.
    code = message.find(RESULT_CODE, len(BOUND)) + len(RESULT_CODE)
    if not message.startswith(BOUND) or code < len(BOUND) or code >= len(message):
        raise _unexpected(message)
    if message[code]:
        raise BadResponse(f"LDAP result {message[code]}")
    return "bound"


def _ber(stream: Stream) -> Receiving:
    """Return the contents of a sequence in BER, whose length may itself have several bytes."""
    tag, length = yield from _exactly(stream, 2)
    if length & 0x80:
        length = int.from_bytes((yield from _exactly(stream, length & 0x7F)), "big")
    if tag != BIND[0] or not length:
        raise BadResponse("not an answer of LDAP")
    return (yield from _exactly(stream, length))


def _mysql(stream: Stream, name: bytes) -> Steps:
    first = yield from _mysql_packet(stream)
    if first[0] != HANDSHAKE:
        raise _unexpected(first)
    login = LOGIN + name + b"\0\0"
    yield from stream.send(len(login).to_bytes(3, "little") + b"\x01" + login + QUIT)
    yield from _mysql_packet(stream)
    return f"MySQL {_words(first[1:].partition(bytes(1))[0])}"


def _mysql_packet(stream: Stream) -> Receiving:
    header = yield from _exactly(stream, 4)
    length = int.from_bytes(header[:3], "little")
    packet = (yield from _exactly(stream, length)) or b"\0"
    if packet[0] == MYSQL_ERROR:
        raise BadResponse(f"MySQL error {int.from_bytes(packet[1:3], 'little')}: {_words(packet[3:])}")
    return packet


def _pgsql(stream: Stream, name: bytes) -> Steps:
    startup = STARTUP + b"user\0" + name + b"\0\0"
    yield from stream.send((len(startup) + 4).to_bytes(4, "big") + startup)
    header = yield from _exactly(stream, 5)
    length = int.from_bytes(header[1:], "big") - 4
    if header[:1] not in (b"E", b"R") or not 0 < length <= MAX_MESSAGE:
        raise _unexpected(header)
    body = yield from _exactly(stream, length)
    if header[:1] == b"E":
        fields = {field[:1]: field[1:] for field in body.split(b"\0")}
        raise BadResponse(f"PostgreSQL error: {_words(fields.get(b'M', b''))}")
    if int.from_bytes(body[:4], "big") not in AUTHENTICATIONS:
        raise _unexpected(body)
    return "PostgreSQL answered"


def _line(stream: Stream) -> Receiving:
    """Return a line; it is read byte by byte, because another one may follow."""
    data = b""
    while not data.endswith(b"\n") and len(data) < MAX_LINE:
        data += yield from _exactly(stream, 1)
    return data


def _exactly(stream: Stream, size: int) -> Receiving:
    if size > MAX_MESSAGE:
        raise BadResponse("an answer that is too long")
    data = b""
    while len(data) < size:
        more = yield from stream.receive(size - len(data))
        if not more:
            raise BadResponse(f"closed after {_words(data)!r}" if data else "closed without an answer")
        data += more
    return data


def _unexpected(answer: bytes) -> BadResponse:
    return BadResponse(f"answered {_words(answer)!r}")


def _words(data: bytes) -> str:
    return data[:SHOWN].decode("ascii", "replace").rstrip()


DIALOGUES: Dict[str, Callable[[Stream, bytes], Steps]] = {
    REDIS: _redis,
    SMTP: _smtp,
    LDAP: _ldap,
    MYSQL: _mysql,
    PGSQL: _pgsql,
}
