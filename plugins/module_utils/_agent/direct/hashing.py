# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The bucket of a connection, as the kernel computes it: `jhash saddr . sport` of nft. Pure.

That is Bob Jenkins' hash (<linux/jhash.h>, lookup3) of the words of the concatenation, each filled up with zeros.
"""

from __future__ import annotations

import ipaddress
import struct

INITIAL = 0xDEADBEEF
WORDS, BLOCK = struct.Struct("=3I"), 12  # bytes at a time
MIX, FINAL = (4, 6, 8, 16, 19, 4), (14, 11, 25, 16, 4, 14, 24)
MASK = 0xFFFFFFFF


def bucket(address: str, port: int, count: int, seed: int) -> int:
    """Return which of so many buckets a client's address and port have."""
    hashed = jhash(ipaddress.ip_address(address).packed + struct.pack("!HH", port, 0), seed)
    return hashed * count >> 32


def jhash(data: bytes, seed: int) -> int:
    a = b = c = (INITIAL + len(data) + seed) & MASK
    at = 0
    while True:
        words = WORDS.unpack(data[at : at + BLOCK].ljust(BLOCK, b"\0"))
        a, b, c = ((known + more) & MASK for known, more in zip((a, b, c), words))
        at += BLOCK
        if at >= len(data):
            return _final(a, b, c)
        for bits in MIX:
            a, b, c = b, (c + b) & MASK, ((a - c) & MASK) ^ _rotated(c, bits)


def _final(a: int, b: int, c: int) -> int:
    for bits in FINAL:
        a, b, c = b, ((c ^ b) - _rotated(b, bits)) & MASK, a
    return b


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & MASK
