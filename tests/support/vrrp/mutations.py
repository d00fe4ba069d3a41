# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutated VRRP messages for fuzzing, and an independent verdict on each of them.

The independent verdict follows the RFCs literally and shares no code with the decoder. It lists every fault of a
message, where the decoder names the first one.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from typing import Any, Dict, NamedTuple, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

V4, V6, UNICAST = ("192.0.2.1", "224.0.0.18"), ("fe80::ff:fe00:1", "ff02::12"), ("192.0.2.1", "192.0.2.3")
PATHS = (V4, V6, UNICAST)
# Messages of keepalived 2.2.7.
PASSWORD = bytes.fromhex("2133fa010101e4e5c00002977365637265740000")
NONE = bytes.fromhex("2134fb0200015e8cc0000298c00002a20000000000000000")
V3 = bytes.fromhex("3135fc01000a6d94c0000299")
V3_IPV6 = bytes.fromhex("3136fd020001a5b4fe80000000000000000000000000015420010db8000000000000000000000154")
V3_UNICAST = bytes.fromhex("3137fe0100148995c000029b")
# CARP: VHID 7, skew 100, 7 words of authentication, every second, a valid checksum, a counter, a digest.
CARP = bytes.fromhex("210764070001be46" + "0011223344556677" + "8899aabbccddeeff00112233445566778899aabb")
SEEDS = ((PASSWORD, V4), (NONE, V4), (V3, V4), (V3_IPV6, V6), (V3_UNICAST, UNICAST), (CARP, V4))


class Case(NamedTuple):
    message: bytes
    source: str
    destination: str
    hop_limit: int = 255


def words(data: bytes) -> int:
    """Return the one's complement sum of the 16-bit words (RFC 1071)."""
    total = 0
    for at in range(0, len(data) - 1, 2):
        total += data[at] << 8 | data[at + 1]
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo(source: str, destination: str, length: int) -> bytes:
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    return ends + (struct.pack("!IHBB", length, 0, 0, 112) if ":" in source else struct.pack("!BBH", 0, 112, length))


def expected_length(message: bytes, source: str) -> int:
    """Return the length that the header promises."""
    return 8 + message[3] * (16 if ":" in source else 4) + (8 if message[0] >> 4 == 2 else 0)


def repaired(message: bytes, source: str, destination: str, with_pseudo: bool) -> bytes:
    """Return the message with a valid checksum, so that the decoder gets as far as its other faults."""
    if len(message) < 8:
        return message
    body = (message[:6] + b"\x00\x00" + message[8:])[: expected_length(message, source)]
    front = pseudo(source, destination, len(body)) if with_pseudo else b""
    return message[:6] + struct.pack("!H", 0xFFFF ^ words(front + body)) + message[8:]


def faults(case: Case) -> Set[str]:
    """Return every reason to discard the message."""
    message, source, destination, hop_limit = case
    if len(message) < 8:
        return {packet.LENGTH}
    found = {packet.HOP_LIMIT} if hop_limit != 255 else set()
    version, kind = divmod(message[0], 16)
    if message[0] == 0x21 and message[3] == 7 and len(message) == 36:
        return found | {packet.CARP}
    if version not in ((3,) if ":" in source else (2, 3)):
        return found | {packet.VERSION}
    found |= {packet.TYPE} if kind != 1 else set()
    if len(message) < expected_length(message, source):
        return found | {packet.LENGTH}
    whole = message[: expected_length(message, source)]
    valid = words(whole) == 0xFFFF and ":" not in source
    valid |= version == 2 and message[4] > 1 and words(message + bytes(len(message) % 2)) == 0xFFFF
    valid |= version == 3 and words(pseudo(source, destination, len(whole)) + whole) == 0xFFFF
    found |= set() if valid else {packet.CHECKSUM}
    found |= {packet.VRID} if message[1] == 0 else set()
    found |= {packet.COUNT} if message[3] == 0 else set()
    found |= {packet.INTERVAL} if message[5] == 0 and (version == 2 or message[4] & 15 == 0) else set()
    found |= {packet.AUTHENTICATION} if version == 2 and message[4] > 1 else set()
    return found


def meaning(case: Case) -> Tuple[Any, ...]:
    """Return the fields of a message without faults, with the addresses parsed."""
    message, (version, size) = case.message, (case.message[0] >> 4, 16 if ":" in case.source else 4)
    end = 8 + message[3] * size
    addresses = tuple(ipaddress.ip_address(message[at : at + size]) for at in range(8, end, size))
    if version == 3:
        return 3, message[1], message[2], (message[4] % 16 * 256 + message[5]) * 10_000, addresses, 0, b""
    password = message[end : end + 8].rstrip(b"\x00") if message[4] == 1 else b""
    return 2, message[1], message[2], message[5] * 1_000_000, addresses, message[4], password


def complaint(case: Case, verdict: Any) -> str:
    """Return what is wrong with the decoder's verdict, or an empty text."""
    expected = faults(case)
    if isinstance(verdict, packet.Discard):
        if verdict.reason in expected:
            return ""
        return f"discarded for {verdict.reason}, but its faults are {sorted(expected)}"
    if expected:
        return f"accepted, but its faults are {sorted(expected)}"
    fields = (*verdict[:4], tuple(map(ipaddress.ip_address, verdict.addresses)), *verdict[5:7])
    if fields != meaning(case):
        return f"decoded as {fields}, but it means {meaning(case)}"
    again = packet.encode(verdict, case.source, case.destination, verdict.checksum)
    if packet.decode(again, case.source, case.destination) != verdict:
        return f"decoded as {verdict}, which is encoded as {again.hex()}"
    return ""


def _random_bytes(rng: random.Random, limit: int) -> bytes:
    return bytes(rng.choices(range(256), k=rng.randint(0, limit)))


def _flip(rng: random.Random, message: bytearray) -> None:
    for _time in range(rng.randint(1, 4)):
        if message:
            message[rng.randrange(len(message))] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, message: bytearray) -> None:
    del message[rng.randint(0, len(message)) :]


def _extend(rng: random.Random, message: bytearray) -> None:
    message += bytes(rng.randint(0, 30)) if rng.random() < 0.5 else _random_bytes(rng, 30)


def _overwrite(rng: random.Random, message: bytearray) -> None:
    """Put a boundary value into a field of the header."""
    if len(message) >= 8:
        values = (0, 0, 0, 0, 0, 1, 2, 3, 7, 15, 16, 0x11, 0x20, 0x21, 0x22, 0x31, 0x32, 0x41, 127, 128, 254, 255)
        message[rng.choice((0, 1, 2, 3, 4, 5))] = rng.choice(values)


def _splice(rng: random.Random, message: bytearray) -> None:
    other, _path = rng.choice(SEEDS)
    message[rng.randint(0, len(message)) :] = other[rng.randint(0, len(other)) :]


def _noise(rng: random.Random, message: bytearray) -> None:
    """Replace the message by random bytes; half of the time the first one is valid."""
    message[:] = _random_bytes(rng, 60)
    if message and rng.random() < 0.5:
        message[0] = rng.choice((0x21, 0x31))


def mutated(rng: random.Random) -> Case:
    """Return the next case: up to three mutations of a valid message, mostly with the checksum repaired afterwards."""
    seed, path = rng.choice(SEEDS)
    message = bytearray(seed)
    if rng.random() < 0.1:
        path = rng.choice(PATHS)
    for _time in range(rng.choice((0, 1, 1, 1, 2, 3))):
        rng.choice((_flip, _cut, _extend, _overwrite, _overwrite, _splice, _noise))(rng, message)
    result = bytes(message)
    if rng.random() < 0.7:
        result = repaired(result, *path, with_pseudo=result[:1] >= b"\x30" and rng.random() < 0.7)
    return Case(result, *path, 255 if rng.random() < 0.95 else rng.choice((0, 1, 64, 254)))


def run(packets: int, seed: int, progress: Any = lambda done: None) -> Dict[str, int]:
    """Decode a number of cases; return how often each verdict occurred: each reason, and "accepted".

    :raises AssertionError: for the first wrong verdict, with what it takes to repeat it
    """
    rng = random.Random(seed)
    counts: Dict[str, int] = {}
    for done in range(packets):
        case = mutated(rng)
        try:
            verdict = packet.decode(*case)
            wrong = complaint(case, verdict)
        except Exception as error:
            raise AssertionError(f"seed {seed}, packet {done}: {case.message.hex()} {case[1:]}: {error!r}") from error
        if wrong:
            raise AssertionError(f"seed {seed}, packet {done}: {case.message.hex()} {case[1:]}: {wrong}")
        name = verdict.reason if isinstance(verdict, packet.Discard) else "accepted"
        counts[name] = counts.get(name, 0) + 1
        progress(done + 1)
    return counts
