# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name in a ClientHello: found in whatever pieces it comes, and nothing else is taken for one."""

from __future__ import annotations

import random
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.client_hello import (
    LIMIT,
    ClientHello,
    NotTls,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import client_hello

NAME = "console.Apps.example.com"


def read(*pieces):
    """Return the name after the last piece, as the worker reads them."""
    hello, name = ClientHello(), None
    for piece in pieces:
        name = hello.add(piece)
        if name is not None:
            return name
    return name


def in_records(message, size):
    """Return a handshake message in records with that many bytes each."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in parts)


def vector(width, content):
    return len(content).to_bytes(width, "big") + content


def message(*extensions, kind=1, bare=False):
    """Return the handshake message of a ClientHello with extensions: (number, content)."""
    listed = b"".join(struct.pack("!H", number) + vector(2, content) for number, content in extensions)
    body = bytes(34) + vector(1, bytes(32)) + vector(2, b"\x13\x01") + vector(1, b"\0")
    return bytes([kind]) + vector(3, body + (b"" if bare else vector(2, listed)))


def server_name(*names):
    return 0, vector(2, b"".join(b"\0" + vector(2, name) for name in names))


REAL = client_hello.of(NAME)


def test_the_name_of_this_hosts_openssl_is_found_in_lower_case():
    assert read(REAL) == NAME.lower()
    assert read(client_hello.of("")) == ""


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100, 4000])
def test_segments_and_records_may_split_it_anywhere(size):
    for data in (REAL, in_records(REAL[5:], size), in_records(REAL[5:], 1)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert read(*pieces) == NAME.lower()
        assert read(*pieces[:-1]) is None


@pytest.mark.parametrize(
    "hello, name",
    [
        (message(server_name(b"a.example")), "a.example"),
        (message((16, b"h2"), server_name(b"a.example"), (43, b"")), "a.example"),
        (message((16, b"h2")), ""),
        (message(), ""),
        (message(bare=True), ""),
        (message(server_name()), ""),
        (message((0, vector(2, b"\x07" + vector(2, b"other") + b"\0" + vector(2, b"a.example")))), "a.example"),
    ],
)
def test_a_hello_may_have_any_extensions_or_none(hello, name):
    assert read(in_records(hello, 1 << 14)) == name


REFUSED = {
    "HTTP": b"GET / HTTP/1.1\r\n",
    "one wrong byte": b"\x80",
    "SSL 2": b"\x80\x2e\x01\x03\x01",
    "an alert": b"\x15\x03\x01\x00\x02\x01\x00",
    "another version": b"\x16\x02",
    "an empty record": b"\x16\x03\x01\x00\x00",
    "a record that is too long": b"\x16\x03\x01\x40\x01",
    "a ServerHello": in_records(message(kind=2), 1 << 14),
    "a message that is too long": b"\x16\x03\x01\x00\x04\x01\x01\x00\x00",
    "a record of something else within": in_records(REAL[5:100], 95) + b"\x17\x03\x03",
    "an extension beyond the end": in_records(message((0, b"\x00\x09\x00")), 1 << 14),
    "a name that is no text": in_records(message(server_name(b"\xff\xfe")), 1 << 14),
    "nothing within": in_records(b"\x01\x00\x00\x01\x00", 1 << 14),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_is_no_hello_is_refused_as_soon_as_it_is_known(data):
    with pytest.raises(NotTls):
        read(data)
    with pytest.raises(NotTls):
        read(*(data[at : at + 1] for at in range(len(data))))


def test_at_most_16_kilobytes_are_read():
    long = in_records(b"\x01" + (LIMIT - 4).to_bytes(3, "big") + bytes(LIMIT), 1 << 10)
    hello = ClientHello()
    with pytest.raises(NotTls):
        while True:
            piece = long[len(hello.received) :][: min(1000, hello.room)]
            assert piece
            hello.add(piece)
    assert len(hello.received) == LIMIT


def test_any_bytes_give_a_name_none_or_a_refusal():
    """Nothing else is raised, no more is read, and pieces say what the whole says."""
    chosen = random.Random(48)
    hellos = [REAL, in_records(REAL[5:], 37), in_records(message(server_name(b"a.example"), (16, b"h2")), 50)]
    for _round in range(20_000):
        data = bytearray(chosen.choice(hellos))
        for _change in range(chosen.randrange(6)):
            at = chosen.randrange(len(data))
            data[at : at + chosen.choice((0, 1, 1, 1, 3))] = bytes(
                chosen.choice((0, 1, 22, 255, chosen.randrange(256))) for _byte in range(chosen.choice((0, 1, 1, 2)))
            )
            data = data or bytearray(b"\x16")
        cut = chosen.randrange(len(data) + 1)
        assert outcome(bytes(data)) == outcome(bytes(data[:cut]), bytes(data[cut:])), bytes(data)


def outcome(*pieces):
    try:
        return read(*pieces)
    except NotTls:
        return NotTls
